"""Use the client that openapi-python-client makes."""

import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from generated import AuthenticatedClient, models  # type: ignore[import-not-found]
from generated.api import bulk, conversions, exports, imports, links, qr_codes, statistics, webhooks_and_events  # type: ignore[import-not-found]
from generated.types import UNSET, File  # type: ignore[import-not-found]

base, key, file = sys.argv[1:]
client = AuthenticatedClient(base, key)


def send(section: Any, operation: str, *arguments: Any, **others: Any) -> Any:
    """Return the response to an operation, which has a module of its own."""
    module = __import__(f"{section.__name__}.{operation}", fromlist=["sync"])
    return module.sync(*arguments, client=client, **others)


first = models.LinkCreate(url="https://example.com/1", custom="first", campaign=0, channel=[])
created = send(links, "links_create", body=first)
urls = [models.LinkCreate(url=f"https://example.com/{number}") for number in (2, 3)]
added = send(bulk, "bulk_add_links", body=models.LinksCreate(urls=urls))

listed, after = [], UNSET
while True:
    page = send(links, "links_list", limit=2, after=after).data
    listed += [link.longurl for link in page.urls]
    if not (after := page.next_):
        break

found = send(links, "links_list", short=f"{base}/seeded")
by = [models.StatsBy("time:day"), models.StatsBy("country")]
report = send(statistics, "stats_query", by=by, ids=[found.id], period=models.StatsPeriod("7d"))
hook = models.WebhookCreate(name="Hook", url="https://example.com/hook", events=[models.WebhookEvents("link.*")])
webhook = send(webhooks_and_events, "webhooks_create", body=hook)
image = send(qr_codes, "qr_create", body=models.QrCodeCreate(type_=models.QrCodeType("text"), data="Hello"))
card = models.QrCodeCreate(type_=models.QrCodeType("vcard"), data=models.VcardData(fname="Dana").to_dict())
other = send(qr_codes, "qr_create", body=card)
with urllib.request.urlopen(image.link) as response:
    png = response.read(4)
export_links_csv = __import__(f"{exports.__name__}.export_links_csv", fromlist=["sync"])
csv = export_links_csv.sync_detailed(client=client).content.decode()
refused = send(links, "links_create", body=first)
read = send(links, "links_get", created.id)
send(links, "links_delete", created.id)
missing = send(links, "links_get", created.id)

with Path(file).open("rb") as opened:
    upload = send(imports, "imports_create", body=models.ImportFile(file=File(opened, "links.csv", "text/csv"))).id
while (done := send(imports, "imports_get", upload).data).finished is None:
    time.sleep(0.1)
rows = send(imports, "imports_list_errors", upload).data
list_errors_csv = __import__(f"{imports.__name__}.imports_list_errors_csv", fromlist=["sync"])
rejected = list_errors_csv.sync_detailed(upload, client=client).content.decode()

rule = models.Rule(when=models.Conditions(country=["Germany"]), url="https://example.com/de")
variants = [models.Variant(name=name, url=f"https://example.com/{name}") for name in "AB"]
tour = models.LinkCreate(url="https://example.com/tour", rules=[rule], variants=variants)
toured = send(links, "links_put", "order-17", body=tour)
tried = send(links, "links_try_visitor", toured.id, body=models.DescribedVisitor(country="Germany")).data
sale = models.Report(link=toured.id, ip="192.0.2.7", agent="Firefox")
reported = send(conversions, "conversions_create", body=sale)
send(links, "links_delete", toured.id, bin_=models.Flag("1"))
in_bin = send(links, "links_list", bin_=models.Flag("1")).data.urls
restored = send(links, "links_restore", toured.id).record
again = send(links, "links_list", externalid="order-17").data.urls

print(
    json.dumps(
        {
            "created": created.shorturl,
            "bulk": added.created,
            "listed": listed,
            "found": found.details.alias,
            "clicks": report.data.totals.clicks,
            "webhook": webhook.secret[:6],
            "codes": [image.link == other.link, png[1:].decode()],
            "csv": csv.splitlines()[0],
            "error": refused.code,
            "read": read.details.alias,
            "deleted": missing.code,
            "imported": [done.made, done.failed],
            "failed": [[row.number, row.raw["url"]] for row in rows],
            "rejected": rejected.splitlines()[0],
            "toured": [
                tried.url,
                reported.result,
                in_bin[0].id == toured.id,
                len(restored.variants),
                again[0].id == toured.id,
            ],
        }
    )
)
