// Use the client that openapi-generator makes for TypeScript and axios.
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { isAxiosError } from "axios";
import * as api from "./generated";

async function of<T>(call: Promise<{ data: T }>): Promise<T> {
  return (await call).data;
}

async function main(base: string, key: string, path: string) {
  const configuration = new api.Configuration({ basePath: base, accessToken: key });
  const links = new api.LinksApi(configuration);

  const first: api.LinkCreate = { url: "https://example.com/1", custom: "first", campaign: 0, channel: [] };
  const created = await of(links.linksCreate({ linkCreate: first }));
  const bulk = await of(new api.BulkApi(configuration).bulkAddLinks({
    linksCreate: { urls: [{ url: "https://example.com/2" }, { url: "https://example.com/3" }] },
  }));

  const listed: string[] = [];
  let after: string | undefined;
  do {
    const page = (await of(links.linksList({ limit: 2, after }))).data!;
    listed.push(...page.urls.map((link) => link.longurl));
    after = page.next;
  } while (after);

  const found = await of(links.linksList({ _short: `${base}/seeded` }));
  const statistics = await of(new api.StatisticsApi(configuration).statsQuery({
    by: ["time:day", "country"],
    ids: [found.id!],
    period: "7d",
  }));
  const webhook = await of(new api.WebhooksAndEventsApi(configuration).webhooksCreate({
    webhookCreate: { name: "Hook", url: "https://example.com/hook", events: ["link.*"] },
  }));
  const codes = new api.QRCodesApi(configuration);
  const image = await of(codes.qrCreate({ qrCodeCreate: { type: "text", data: "Hello" } }));
  const card: api.VcardData = { fname: "Dana" };
  const other = await of(codes.qrCreate({ qrCodeCreate: { type: "vcard", data: card } }));
  const png = await (await fetch(image.link)).arrayBuffer();
  const csv = await of(new api.ExportsApi(configuration).exportLinksCsv());
  const errorOf = (call: Promise<unknown>): Promise<api.ModelError> =>
    call.then(() => Promise.reject(), (error) => (isAxiosError(error) ? error.response!.data : Promise.reject(error)));
  const refused = await errorOf(links.linksCreate({ linkCreate: first }));

  const linkId = created.id;
  const read = await of(links.linksGet({ linkId }));
  await links.linksDelete({ linkId });
  const missing = await errorOf(links.linksGet({ linkId }));

  const imports = new api.ImportsApi(configuration);
  const importId = (await of(imports.importsCreate({ file: new File([readFileSync(path)], "links.csv") }))).id!;
  let done: api.Import;
  while (!(done = (await of(imports.importsGet({ importId }))).data).finished) await setTimeout(100);
  const rows = (await of(imports.importsListErrors({ importId }))).data;
  const rejected = await of(imports.importsListErrorsCsv({ importId }));

  const tour: api.LinkCreate = {
    url: "https://example.com/tour",
    rules: [{ when: { country: ["Germany"] }, url: "https://example.com/de" }],
    variants: ["A", "B"].map((name) => ({ name, url: `https://example.com/${name}` })),
  };
  const toured = await of(links.linksPut({ externalid: "order-17", linkCreate: tour }));
  const ofToured = { linkId: toured.id };
  const tried = await of(links.linksTryVisitor({ ...ofToured, describedVisitor: { country: "Germany" } }));
  const report: api.Report = { link: toured.id, ip: "192.0.2.7", agent: "Firefox" };
  const reported = await of(new api.ConversionsApi(configuration).conversionsCreate({ report }));
  await links.linksDelete({ ...ofToured, bin: "1" });
  const bin = (await of(links.linksList({ bin: "1" }))).data!.urls;
  const restored = (await of(links.linksRestore(ofToured))).record;
  const again = (await of(links.linksList({ externalid: "order-17" }))).data!.urls;

  return {
    created: created.shorturl,
    bulk: bulk.created,
    listed,
    found: found.details!.alias,
    clicks: statistics.data.totals.clicks,
    webhook: webhook.secret.slice(0, 6),
    codes: [image.link === other.link, new TextDecoder("latin1").decode(png).slice(1, 4)],
    csv: csv.split("\r\n")[0],
    error: refused.code,
    read: read.details.alias,
    deleted: missing.code,
    imported: [done.made, done.failed],
    failed: rows.map((row) => [row.number, row.raw.url]),
    rejected: rejected.split("\r\n")[0],
    toured: [
      tried.data.url,
      reported.result,
      bin[0].id === toured.id,
      restored.variants.length,
      again[0].id === toured.id,
    ],
  };
}

main(process.argv[2], process.argv[3], process.argv[4]).then((seen) => console.log(JSON.stringify(seen)));
