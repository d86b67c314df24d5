"""The body of `POST /api/url/add` that a row of a source stands for."""

import re
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from linkmgr.db.statements import Row
from linkmgr.imports.links import Loader, Outcome, Sent, failure
from linkmgr.imports.rows import ImportRow
from linkmgr.repository import imported_links
from linkmgr.web.errors import AppError

MAX_CHANNELS = 100  # of a row
MAX_CHANNEL_NAME = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class Context(NamedTuple):
    """Rows of the user to which the rows of a batch refer."""

    hosts: set[str]
    channels: dict[str, int]


def prepare(user_id: int, rows: list[ImportRow]) -> Context:
    """Find the branded domains and the channels that the rows name. Channels that are missing are made."""
    names = list({name for row in rows if not has_too_many_channels(row) for name in channel_names(row)})
    return Context(own_hosts(user_id, rows), imported_links.channel_ids(user_id, names) if names else {})


def own_hosts(user_id: int, rows: list[ImportRow]) -> set[str]:
    hosts = list({host for row in rows if (host := host_of(row))})
    return imported_links.own_hosts(user_id, hosts) if hosts else set()


def host_of(row: ImportRow) -> str:
    """Return the host of the short URL in the source, or ""."""
    domain = str(row.record.get("domain") or "").strip().lower()
    try:
        return urlsplit(domain if "://" in domain else f"//{domain}").hostname or ""
    except ValueError:
        return ""


def channel_names(row: ImportRow) -> list[str]:
    names = (_CONTROL.sub(" ", tag).strip()[:MAX_CHANNEL_NAME].strip() for tag in row.tags)
    return [name for name in dict.fromkeys(names) if name]


def has_too_many_channels(row: ImportRow) -> bool:
    return len(row.tags) > MAX_CHANNELS and len(channel_names(row)) > MAX_CHANNELS


def reference(row: ImportRow) -> str:
    """Return the name of the row in its source, to which later rows refer."""
    return f"{host_of(row)}/{row.record.get('custom', '')}"


def check(row: ImportRow, context: Context, loader: Loader) -> Sent | Outcome:
    """Return the link of a row, or the reason why it cannot be stored.

    The domain of the source is kept if it is a branded domain of the user. Otherwise the link moves to our own host.
    """
    if row.problem:
        return Outcome("failed", None, "invalid", row.problem)
    if has_too_many_channels(row):
        return failure(AppError("invalid", problems=f"tags must have at most {MAX_CHANNELS} names"))
    body: Row = {name: value for name, value in row.record.items() if name != "domain"}
    if host_of(row) in context.hosts:
        body["domain"] = host_of(row)
    if names := channel_names(row):
        body["channel"] = [context.channels[name] for name in names if name in context.channels]
    try:
        link = loader.prepare(body)
    except AppError as error:
        return failure(error)
    if row.created and row.created < datetime.now(UTC).isoformat(" "):
        link["created"] = f"{row.created}+00"
    return Sent(body, link, row.clicks)
