"""Everything that a user owns as files of JSON lines, which an import takes back.

Format 1. Each line is an object with the members of the API, and `id`: the id that other lines
refer to. The files come in an order in which a line refers to earlier lines only. Times are UTC.

    domains.jsonl    the members of POST /api/domain/add, and `image`: the PNG of its logo in
                     base64, or null
    campaigns.jsonl, channels.jsonl, pixels.jsonl, splash.jsonl, overlays.jsonl,
    utm.jsonl
                     the members of POST /api/campaign/add and so on, and date
    bio.jsonl        the members of POST /api/bio/add, custom, channel, date
    answers.jsonl    overlay (an id), answer, date
    links.jsonl      the members of POST /api/url/add in the form in which they are sent: `type` is
                     the id of a splash page or overlay-<id>; `campaign`, `pixels` and `channel` are
                     ids. `domain` is "" on the service's own host, `custom` is "" if the service
                     generated `alias`, and `plain` is true if the link was created from its URL
                     alone. `password_hash` is the argon2id hash of the password, or null. `clicks`
                     and `uniqueclicks` are the totals, and `imported_clicks` are those of another
                     service. `source_host` and `source_clicks` are its host and its clicks at the
                     last import, or null. `experiments` are those of `variants`, the last one last,
                     whose visitors are those of the visits.
    qr.jsonl         type, data, name, background, foreground, logo, `code` (the last part of its
                     URL), `channel`, and the totals `scans` and `uniquescans`
    logos.jsonl      id of the QR code, and `image`: the PNG of its logo in base64
    visits.jsonl     target (the id of a link or a QR code), time with microseconds, visitor (a
                     digest), bot, and the label of each dimension of statistics. A target's visits
                     are sorted by time.
    conversions.jsonl
                     link (an id), click (the time of the visit) and date with microseconds, event,
                     order, value, currency, problem, source, and the labels of the visit
    public.jsonl     link or campaign (an id), the members of PUT /api/url/{id}/public,
                     `password_hash`, and `token`: the last part of the address, or null
    settings.jsonl   the members of PUT /api/conversions/setup, if any is set
    manifest.json    `format`, `service`, `base_url`, `username`, `exported` (the time), and
                     `counts`: lines by file

Links and QR codes in the bin, their visits and conversions, old short URLs of links that moved,
members, API keys, webhooks, sessions, the activity, and the profile of the user are not exported.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import orjson

from linkmgr.core.database.statements import Row
from linkmgr.core.database.tables import Batch, in_batches
from linkmgr.core.settings import settings
from linkmgr.core.web import streams
from linkmgr.features.conversions import repository as conversions
from linkmgr.features.public_statistics import repository as public_statistics
from linkmgr.features.statistics import visit_list
from linkmgr.features.utm.schema import UTM_TEMPLATES
from linkmgr.repository import domains, link_records, qr, users
from linkmgr.schemas.domains import DOMAINS
from linkmgr.schemas.links import Link
from linkmgr.schemas.qr import QR_CODES
from linkmgr.schemas.stored import STORED

FORMAT = 1
RESOURCES = {stored.words.file_name: stored for stored in (*STORED, UTM_TEMPLATES)}
FILES = (*RESOURCES, "answers", "links", "qr", "logos", "visits", "conversions", "public", "settings")
# Members that follow from others
_DERIVED = {
    "links": ("shorturl", "channels", "haspassword"),
    "qr": ("shorturl", "link"),
    "bio": ("shorturl",),
    "public": ("id",),
}


def files(user_id: int) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the name and the content of each file. A content must be read before the next one."""
    counts: dict[str, int] = {}
    for name in FILES:
        yield f"{name}.jsonl", _lines(name, user_id, counts)
    manifest = {
        "format": FORMAT,
        "service": "linkmgr",
        "base_url": settings().base_url,
        "counts": counts,
        "username": users.read(user_id)["username"],
        "exported": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
    }
    yield "manifest.json", [orjson.dumps(manifest, option=orjson.OPT_INDENT_2)]


def _batches(name: str, user_id: int) -> Iterator[list[Row]]:
    if name == "answers":
        return visit_list.answers(user_id)
    if name == "visits":
        return visit_list.all_visits(user_id)
    if name == "conversions":
        return in_batches(conversions.batch, user_id)
    if name == "settings":
        setup = conversions.setup(user_id)
        return iter([[setup]] if any(setup.values()) else [])
    special: dict[str, Batch] = {
        "domains": _domains,
        "links": _links,
        "qr": QR_CODES.exported,
        "logos": qr.logos,
        "public": public_statistics.batch,
    }
    return in_batches(special.get(name) or RESOURCES[name].exported, user_id)


def _domains(user_id: int, after: int) -> list[Row]:
    records = DOMAINS.exported(user_id, after)
    images = domains.logos(user_id, [domain["id"] for domain in records])
    return [domain | {"image": images.get(domain["id"])} for domain in records]


def _links(user_id: int, after: int) -> list[Row]:
    """Name our own host "", because the links may be imported on another one."""
    base, names = settings().base_url, (*Link.shown("export"), *link_records.STORED)
    return [
        {name: link[name] for name in names} | {"domain": "" if link["domain"] == base else link["domain"]}
        for link in link_records.batch(user_id, after)
    ]


def _lines(name: str, user_id: int, counts: dict[str, int]) -> Iterator[bytes]:
    counts[f"{name}.jsonl"], derived = 0, _DERIVED.get(name, ())
    for batch in _batches(name, user_id):
        counts[f"{name}.jsonl"] += len(batch)
        yield streams.json_lines(
            {member: value for member, value in record.items() if member not in derived} for record in batch
        )
