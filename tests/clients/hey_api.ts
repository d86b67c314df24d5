// Use the client that @hey-api/openapi-ts makes.
import * as api from "./generated";
import { client } from "./generated/client.gen";

async function main(base: string, key: string) {
  client.setConfig({ baseUrl: base, auth: () => key });

  const first: api.LinkCreate = { url: "https://example.com/1", custom: "first", campaign: 0, channel: [] };
  const created = await api.linksCreate({ body: first });
  const bulk = await api.bulkAddLinks({
    body: { urls: [{ url: "https://example.com/2" }, { url: "https://example.com/3" }] },
  });

  const listed: string[] = [];
  let after: string | undefined;
  do {
    const page = (await api.linksList({ query: { limit: 2, after } })).data!.data!;
    listed.push(...page.urls.map((link) => link.longurl));
    after = page.next;
  } while (after);

  const found = (await api.linksList({ query: { short: `${base}/seeded` } })).data!;
  const statistics = await api.statsQuery({
    query: { by: ["time:day", "country"], ids: `${found.id}`, period: "7d" },
  });
  const webhook = await api.webhooksCreate({
    body: { name: "Hook", url: "https://example.com/hook", events: ["link.*"] },
  });
  const image = await api.qrCreate({ body: { type: "text", data: "Hello" } });
  const card: api.VcardData = { fname: "Dana" };
  const other = await api.qrCreate({ body: { type: "vcard", data: card } });
  const png = await (await fetch(image.data!.link)).arrayBuffer();
  const csv = await api.exportLinksCsv();
  const refused = await api.linksCreate({ body: first });

  return {
    created: created.data!.shorturl,
    bulk: bulk.data!.created,
    listed,
    found: found.details!.alias,
    clicks: statistics.data!.data.totals.clicks,
    webhook: webhook.data!.secret.slice(0, 6),
    codes: [image.data!.link === other.data!.link, new TextDecoder("latin1").decode(png).slice(1, 4)],
    csv: csv.data!.split("\r\n")[0],
    error: refused.error!.code,
  };
}

main(process.argv[2], process.argv[3]).then((seen) => console.log(JSON.stringify(seen)));
