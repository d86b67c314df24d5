"""The body of `POST /api/url/add` that a row of a source stands for."""

import re
from datetime import UTC, datetime
from urllib.parse import urlsplit

from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.fields.base import load
from linkmgr.imports.links import Outcome, Sent, failure
from linkmgr.imports.rows import ImportRow
from linkmgr.repository import imported_links
from linkmgr.resources.urls import Link
from linkmgr.settings import settings

MAX_CHANNELS = 100  # of a row
MAX_CHANNEL_NAME = MAX_TITLE = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def channel_ids(user_id: int, rows: list[ImportRow]) -> dict[str, int]:
    """Return the ids of the channels that the rows name. Those that are missing are made."""
    names = list({name for row in rows for name in channel_names(row)})
    return imported_links.channel_ids(user_id, names) if names else {}


def own_hosts(user_id: int, rows: list[ImportRow]) -> set[str]:
    hosts = list({row.host for row in rows if row.host})
    return imported_links.own_hosts(user_id, hosts) if hosts else set()


def foreign_host(row: ImportRow) -> str:
    """Return the host of the short URL in the source if it is not ours, else ""."""
    return "" if row.host == urlsplit(settings().base_url).hostname else row.host


def channel_names(row: ImportRow) -> list[str]:
    names = (_CONTROL.sub(" ", tag).strip()[:MAX_CHANNEL_NAME].strip() for tag in row.tags)
    return [name for name in dict.fromkeys(names) if name]


def has_too_many_channels(row: ImportRow) -> bool:
    return len(row.tags) > MAX_CHANNELS and len(channel_names(row)) > MAX_CHANNELS


def check(row: ImportRow, hosts: set[str]) -> Sent | Outcome:
    """Return the link of a row, or the reason why it cannot be stored.

    The domain of the source is kept if it is a branded domain of the user. Otherwise the link moves to our own host.
    """
    if row.problem:
        return Outcome("failed", None, "invalid", row.problem)
    if has_too_many_channels(row):
        return failure(AppError("invalid", problems=f"tags must have at most {MAX_CHANNELS} names"))
    body: Row = {name: value for name, value in row.record.items() if name != "domain"}
    host = foreign_host(row)
    if host in hosts:
        body["domain"] = host
    title = str(body.get("metatitle", ""))
    if len(title) > MAX_TITLE:
        body["metatitle"] = title[:MAX_TITLE]
    try:
        link = Link.to_row(load(Link.creates(), body))
    except AppError as error:
        return failure(error)
    if row.created and row.created < datetime.now(UTC).isoformat(" "):
        link["created"] = f"{row.created}+00"
    moved_from = host if host and host not in hosts else ""
    return Sent(body, link, row.clicks, moved_from, len(title) > MAX_TITLE)
