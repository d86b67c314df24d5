// Use the client that @hey-api/openapi-ts makes.
import { openAsBlob } from "node:fs";
import { setTimeout } from "node:timers/promises";
import * as api from "./generated";
import { client } from "./generated/client.gen";

async function main(base: string, key: string, path: string) {
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
    query: { by: ["time:day", "country"], ids: [found.id!], period: "7d" },
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

  const link = { path: { link_id: created.data!.id } };
  const read = await api.linksGet(link);
  await api.linksDelete({ ...link, throwOnError: true });
  const missing = await api.linksGet(link);

  const upload = await api.importsCreate({ body: { file: await openAsBlob(path) } });
  const import_ = { path: { import_id: upload.data!.id! } };
  let done: api.Import;
  while (!(done = (await api.importsGet(import_)).data!.data).finished) await setTimeout(100);
  const rows = (await api.importsListErrors(import_)).data!.data;
  const rejected = await api.importsListErrorsCsv(import_);

  const tour: api.LinkCreate = {
    url: "https://example.com/tour",
    rules: [{ when: { country: ["Germany"] }, url: "https://example.com/de" }],
    variants: ["A", "B"].map((name) => ({ name, url: `https://example.com/${name}` })),
  };
  const toured = (await api.linksPut({ path: { externalid: "order-17" }, body: tour })).data!;
  const ofToured = { path: { link_id: toured.id } };
  const tried = await api.linksTryVisitor({ ...ofToured, body: { country: "Germany" } });
  const reported = await api.conversionsCreate({ body: { link: toured.id, ip: "192.0.2.7", agent: "Firefox" } });
  await api.linksDelete({ ...ofToured, query: { bin: "1" }, throwOnError: true });
  const bin = (await api.linksList({ query: { bin: "1" } })).data!.data!.urls;
  const restored = (await api.linksRestore(ofToured)).data!.record;
  const again = (await api.linksList({ query: { externalid: "order-17" } })).data!.data!.urls;

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
    read: read.data!.details.alias,
    deleted: missing.error!.code,
    imported: [done.made, done.failed],
    failed: rows.map((row) => [row.number, row.raw.url]),
    rejected: rejected.data!.split("\r\n")[0],
    toured: [
      tried.data!.data.url,
      reported.data!.result,
      bin[0].id === toured.id,
      restored.variants.length,
      again[0].id === toured.id,
    ],
  };
}

main(process.argv[2], process.argv[3], process.argv[4]).then((seen) => console.log(JSON.stringify(seen)));
