"""Use the client that openapi-generator makes for Python."""

import json
import sys
import time
import urllib.request

import linkmgr_client as api  # type: ignore[import-not-found]

base, key, file = sys.argv[1:]
client = api.ApiClient(api.Configuration(host=base, access_token=key))
links = api.LinksApi(client)

created = links.links_create(api.LinkCreate(url="https://example.com/1", custom="first", campaign=0, channel=[]))
bulk = api.BulkApi(client).bulk_add_links(
    api.LinksCreate(urls=[api.LinkCreate(url=f"https://example.com/{number}") for number in (2, 3)])
)

listed, after = [], None
while True:
    page = links.links_list(limit=2, after=after).data
    listed += [link.longurl for link in page.urls]
    if not (after := page.next):
        break

found = links.links_list(short=f"{base}/seeded")
statistics = api.StatisticsApi(client).stats_query(by=["time:day", "country"], ids=[found.id], period="7d")
webhook = api.WebhooksAndEventsApi(client).webhooks_create(
    api.WebhookCreate(name="Hook", url="https://example.com/hook", events=["link.*"])
)
codes = api.QRCodesApi(client)
image = codes.qr_create(api.QrCodeCreate(type="text", data="Hello"))
card = codes.qr_create(api.QrCodeCreate(type="vcard", data=api.VcardData(fname="Dana").to_dict()))
with urllib.request.urlopen(image.link) as response:
    png = response.read(4)
csv = api.ExportsApi(client).export_links_csv()
try:
    links.links_create(api.LinkCreate(url="https://example.com/1", custom="first"))
except api.ApiException as error:
    refused = error.data

read = links.links_get(created.id)
links.links_delete(created.id)
try:
    links.links_get(created.id)
except api.ApiException as error:
    missing = error.data

imports = api.ImportsApi(client)
upload = imports.imports_create(file=file).id
while (done := imports.imports_get(upload).data).finished is None:
    time.sleep(0.1)
rows = imports.imports_list_errors(upload).data
rejected = imports.imports_list_errors_csv(upload)

rule = api.Rule(when=api.Conditions(country=["Germany"]), url="https://example.com/de")
variants = [api.Variant(name=name, url=f"https://example.com/{name}", weight=1) for name in "AB"]
toured = links.links_put("order-17", api.LinkCreate(url="https://example.com/tour", rules=[rule], variants=variants))
tried = links.links_try_visitor(toured.id, described_visitor=api.DescribedVisitor(country="Germany")).data
report = api.Report(link=toured.id, ip="192.0.2.7", agent="Firefox", event="sale")
reported = api.ConversionsApi(client).conversions_create(report=report)
links.links_delete(toured.id, bin="1")
in_bin = [link.id for link in links.links_list(bin="1").data.urls]
restored = links.links_restore(toured.id).record
[again] = links.links_list(externalid="order-17").data.urls

print(
    json.dumps(
        {
            "created": created.shorturl,
            "bulk": bulk.created,
            "listed": listed,
            "found": found.details.alias,
            "clicks": statistics.data.totals.clicks,
            "webhook": webhook.secret[:6],
            "codes": [image.link == card.link, png[1:].decode()],
            "csv": csv.splitlines()[0],
            "error": refused.code,
            "read": read.details.alias,
            "deleted": missing.code,
            "imported": [done.made, done.failed],
            "failed": [[row.number, row.raw["url"]] for row in rows],
            "rejected": rejected.splitlines()[0],
            "toured": [tried.url, reported.result, toured.id in in_bin, len(restored.variants), again.id == toured.id],
        }
    )
)
