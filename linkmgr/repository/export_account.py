"""Everything that a user owns as files of JSON lines, which an import takes back.

Format 1. Each line is an object with the members of the API, and `id`: the id that other lines refer to. The files come
in an order in which a line refers to earlier lines only. Times are UTC.

    domains.jsonl    domain, redirectroot, redirect404, brandname, brandlogo, brandcolor, and `image`: the PNG of its
                     logo in base64, or null
    campaigns.jsonl  name, slug, public, date
    channels.jsonl   name, description, color, starred, date
    pixels.jsonl     type, name, tag, date
    splash.jsonl     name, title, message, link, counter, banner, date
    overlays.jsonl   type, name, message, link, label, position, color, background, date
    answers.jsonl    overlay (an id), answer, date
    links.jsonl      the members of POST /api/url/add in the form in which they are sent: `type` is the id of a splash
                     page or overlay-<id>; `campaign`, `pixels` and `channel` are ids. `domain` is "" on the service's
                     own host, `custom` is "" if the service generated `alias`, and `plain` is true if the link was
                     created from its URL alone. `password_hash` is the argon2id hash of the password, or null.
                     `clicks` and `uniqueclicks` are the totals, and `imported_clicks` are those of another service.
    qr.jsonl         type, data, name, background, foreground, logo, `code` (the last part of its URL), `channel`, and
                     the totals `scans` and `uniquescans`
    logos.jsonl      id of the QR code, and `image`: the PNG of its logo in base64
    bio.jsonl        name, alias, custom, bio, theme, links, channel, date
    visits.jsonl     target (the id of a link or a QR code), time with microseconds, visitor (a digest), country, city,
                     referrer, browser, os, device, language, bot. A target's visits are sorted by time.
    manifest.json    `format`, `service`, `base_url`, `username`, `exported` (the time), and `counts`: lines by file

API keys, webhooks, sessions and the user's password are not exported.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from linkmgr.db.statements import Row, row
from linkmgr.repository import export, export_visits
from linkmgr.settings import settings
from linkmgr.web import export as web_export

FORMAT = 1
_BATCHES = {
    "domains": export.domains_with_images,
    "campaigns": export.campaigns,
    "channels": export.channels,
    "pixels": export.pixels,
    "splash": export.splash_pages,
    "overlays": export.overlays,
}
_OWN = ("shorturl", "link", "channels", "haspassword")  # members that follow from others


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
    for name, batch in _BATCHES.items():
        yield name, export.batches(batch, user_id)
    yield "answers", export_visits.answers(user_id)
    yield "links", _without(_OWN, _with_own_host(export.batches(export.links, user_id)))
    yield "qr", _without(_OWN, export.batches(export.codes, user_id))
    yield "logos", export.batches(export.logos, user_id)
    yield "bio", _without(_OWN, export.batches(export.bio_pages, user_id))
    yield "visits", export_visits.visits(user_id)


def _with_own_host(batches: Iterator[list[Row]]) -> Iterator[list[Row]]:
    """Name our own host "", because the links may be imported on another one."""
    for batch in batches:
        yield [link | {"domain": "" if link["domain"] == settings().base_url else link["domain"]} for link in batch]


def _without(members: tuple[str, ...], batches: Iterator[list[Row]]) -> Iterator[list[Row]]:
    for batch in batches:
        yield [{name: value for name, value in record.items() if name not in members} for record in batch]


def _lines(file: str, batches: Iterator[list[Row]], counts: dict[str, int]) -> Iterator[bytes]:
    for batch in batches:
        counts[file] += len(batch)
        yield web_export.json_lines(batch)


def _account(user_id: int) -> dict[str, Any]:
    account = row("SELECT username, now() AS exported FROM users WHERE id = %(user_id)s", user_id=user_id)
    assert account
    return account
