// Use openapi-fetch with the types that openapi-typescript makes.
import { openAsBlob } from "node:fs";
import { setTimeout } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./generated";

async function main(base: string, key: string, path: string) {
  const client = createClient<paths, "application/json">({
    baseUrl: base,
    headers: { Authorization: `Bearer ${key}` },
    querySerializer: { array: { style: "form", explode: false } },
  });

  const first = { url: "https://example.com/1", custom: "first", campaign: 0, channel: [] };
  const created = await client.POST("/api/url/add", { body: first });
  const bulk = await client.POST("/api/urls/bulk", {
    body: { urls: [{ url: "https://example.com/2" }, { url: "https://example.com/3" }] },
  });

  const listed: string[] = [];
  let after: string | undefined;
  do {
    const page = (await client.GET("/api/urls", { params: { query: { limit: 2, after } } })).data!.data!;
    listed.push(...page.urls.map((link) => link.longurl));
    after = page.next;
  } while (after);

  const found = (await client.GET("/api/urls", { params: { query: { short: `${base}/seeded` } } })).data!;
  const statistics = await client.GET("/api/stats", {
    params: { query: { by: ["time:day", "country"], ids: [found.id!], period: "7d" } },
  });
  const webhook = await client.POST("/api/webhooks", {
    body: { name: "Hook", url: "https://example.com/hook", events: ["link.*"] },
  });
  const image = await client.POST("/api/qr/add", { body: { type: "text", data: "Hello" } });
  const card: components["schemas"]["VcardData"] = { fname: "Dana" };
  const other = await client.POST("/api/qr/add", { body: { type: "vcard", data: card } });
  const png = await (await fetch(image.data!.link)).arrayBuffer();
  const csv = await client.GET("/api/urls/export.csv", { parseAs: "text" });
  const refused = await client.POST("/api/url/add", { body: first });

  const link = { params: { path: { link_id: created.data!.id } } };
  const read = await client.GET("/api/url/{link_id}", link);
  await client.DELETE("/api/url/{link_id}/delete", link);
  const missing = await client.GET("/api/url/{link_id}", link);

  const form = new FormData();
  form.append("file", await openAsBlob(path));
  const upload = await client.POST("/api/imports", { body: { file: "" }, bodySerializer: () => form });
  const import_ = { params: { path: { import_id: upload.data!.id! } } };
  let done: components["schemas"]["Import"];
  while (!(done = (await client.GET("/api/imports/{import_id}", import_)).data!.data).finished) await setTimeout(100);
  const rows = (await client.GET("/api/imports/{import_id}/errors", import_)).data!.data;
  const rejected = await client.GET("/api/imports/{import_id}/errors.csv", { ...import_, parseAs: "text" });

  const tour: components["schemas"]["LinkCreate"] = {
    url: "https://example.com/tour",
    rules: [{ when: { country: ["Germany"] }, url: "https://example.com/de" }],
    variants: ["A", "B"].map((name) => ({ name, url: `https://example.com/${name}` })),
  };
  const external = { path: { externalid: "order-17" } };
  const toured = (await client.PUT("/api/url/external/{externalid}", { params: external, body: tour })).data!;
  const ofToured = { params: { path: { link_id: toured.id } } };
  const tried = await client.POST("/api/url/{link_id}/try", { ...ofToured, body: { country: "Germany" } });
  const reported = await client.POST("/api/conversions", { body: { link: toured.id, ip: "192.0.2.7", agent: "Firefox" } });
  await client.DELETE("/api/url/{link_id}/delete", {
    params: { ...ofToured.params, query: { bin: "1" } },
  });
  const bin = (await client.GET("/api/urls", { params: { query: { bin: "1" } } })).data!.data!.urls;
  const restored = (await client.POST("/api/url/{link_id}/restore", ofToured)).data!.record;
  const again = (await client.GET("/api/urls", { params: { query: { externalid: "order-17" } } })).data!.data!.urls;

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
