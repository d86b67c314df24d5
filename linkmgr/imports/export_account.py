"""Everything that a user owns as files of JSON lines, which an import takes back.

Format 1. Each line is an object with the members of the API, and `id`: the id that other lines refer to. The files come
in an order in which a line refers to earlier lines only. Times are UTC.

    domains.jsonl    the members of POST /api/domain/add, and `image`: the PNG of its logo in base64, or null
    campaigns.jsonl, channels.jsonl, pixels.jsonl, splash.jsonl, overlays.jsonl
                     the members of POST /api/campaign/add and so on, and date
    answers.jsonl    overlay (an id), answer, date
    links.jsonl      the members of POST /api/url/add in the form in which they are sent: `type` is the id of a splash
                     page or overlay-<id>; `campaign`, `pixels` and `channel` are ids. `domain` is "" on the service's
                     own host, `custom` is "" if the service generated `alias`, and `plain` is true if the link was
                     created from its URL alone. `password_hash` is the argon2id hash of the password, or null.
                     `clicks` and `uniqueclicks` are the totals, and `imported_clicks` are those of another service.
    qr.jsonl         type, data, name, background, foreground, logo, `code` (the last part of its URL), `channel`, and
                     the totals `scans` and `uniquescans`
    logos.jsonl      id of the QR code, and `image`: the PNG of its logo in base64
    bio.jsonl        the members of POST /api/bio/add, custom, channel, date
    visits.jsonl     target (the id of a link or a QR code), time with microseconds, visitor (a digest), country, city,
                     referrer, browser, os, device, language, bot. A target's visits are sorted by time.
    manifest.json    `format`, `service`, `base_url`, `username`, `exported` (the time), and `counts`: lines by file

API keys, webhooks, sessions and the user's password are not exported.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from linkmgr.db.statements import Row, row
from linkmgr.errors import AppError
from linkmgr.repository import domains, qr, url_records, visit_list
from linkmgr.repository.tables import in_batches
from linkmgr.resources.bio import BioPage
from linkmgr.resources.campaigns import Campaign
from linkmgr.resources.channels import Channel
from linkmgr.resources.domains import Domain
from linkmgr.resources.overlay import Overlay
from linkmgr.resources.pixels import Pixel
from linkmgr.resources.qr import QrCode
from linkmgr.resources.resource import Resource
from linkmgr.resources.splash import Splash
from linkmgr.resources.urls import Link
from linkmgr.settings import settings
from linkmgr.web import export as web_export

FORMAT = 1


def _domains(user_id: int, after: int) -> list[Row]:
    records = Domain.batch(user_id, after)
    images = domains.logos(user_id, [domain["id"] for domain in records])
    return [domain | {"image": images.get(domain["id"])} for domain in records]


def _links(user_id: int, after: int) -> list[Row]:
    """Name our own host "", because the links may be imported on another one."""
    own = settings().base_url
    return [
        {name: link[name] for name in _LINK_MEMBERS} | {"domain": "" if link["domain"] == own else link["domain"]}
        for link in url_records.batch(user_id, after)
    ]


# By their files.
RESOURCES: dict[str, type[Resource]] = {
    "domains": Domain,
    "campaigns": Campaign,
    "channels": Channel,
    "pixels": Pixel,
    "splash": Splash,
    "overlays": Overlay,
}
_OWN = ("shorturl", "link", "channels", "haspassword")  # members that follow from others
_LINK_MEMBERS = (*(name for name in Link.shown("export") if name not in _OWN), "password_hash", "plain")


def files(user_id: int) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the name and the content of each file. A content must be read before the next one."""
    counts: dict[str, int] = {}
    for name, batches in _contents(user_id):
        file = f"{name}.jsonl"
        counts[file] = 0
        yield file, _lines(file, batches, counts)
    manifest = {"format": FORMAT, "service": "linkmgr", "base_url": settings().base_url, "counts": counts}
    yield "manifest.json", [orjson.dumps(manifest | _account(user_id), option=orjson.OPT_INDENT_2)]


def _contents(user_id: int) -> Iterator[tuple[str, Iterator[list[Row]]]]:
    for name, resource in RESOURCES.items():
        yield name, in_batches(_domains if resource is Domain else resource.batch, user_id)
    yield "answers", visit_list.answers(user_id)
    yield "links", in_batches(_links, user_id)
    yield "qr", _without(_OWN, in_batches(QrCode.batch, user_id))
    yield "logos", in_batches(qr.logos, user_id)
    yield "bio", _without(_OWN, in_batches(BioPage.batch, user_id))
    yield "visits", visit_list.all_visits(user_id)


def _without(members: tuple[str, ...], batches: Iterator[list[Row]]) -> Iterator[list[Row]]:
    for batch in batches:
        yield [{name: value for name, value in record.items() if name not in members} for record in batch]


def _lines(file: str, batches: Iterator[list[Row]], counts: dict[str, int]) -> Iterator[bytes]:
    for batch in batches:
        counts[file] += len(batch)
        yield web_export.json_lines(batch)


def _account(user_id: int) -> dict[str, Any]:
    account = row("SELECT username, now() AS exported FROM users WHERE id = %(user_id)s", user_id=user_id)
    if account is None:  # deleted during the request
        raise AppError("key_unknown")
    return account
