"""Move events from the outbox to the webhooks that subscribe to them.

The outbox has the row as a change has written it. Its record is made here by the statement of its
GET. What belongs to other rows, such as channels, is as it is then, within about a second of the
change. The record of a deleted row has the members that were stored when it was deleted.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson
import psycopg2
from flask import current_app

from linkmgr.core.database.session import is_connection_lost
from linkmgr.core.database.statements import Row, timestamp
from linkmgr.core.errors import AppError
from linkmgr.core.fields.countries import with_code
from linkmgr.core.fields.short_urls import short_url
from linkmgr.core.settings import settings
from linkmgr.features.imports import repository as imports
from linkmgr.features.webhooks import activity, outbox
from linkmgr.features.webhooks.noted import as_written
from linkmgr.features.webhooks.schema import CARRIED, TEST, matches
from linkmgr.repository import link_records
from linkmgr.schemas.links import LINKS
from linkmgr.schemas.qr import QR_CODES

MAX_BATCH = 200
MAX_DATA = 19_000  # bytes; the body of a delivery has at most 20 kB


def _read_import(user_id: int, import_id: int) -> Row:
    return {name: value for name, value in imports.read(user_id, import_id).items() if name != "version"}


_READ: dict[str, Callable[[int, int], Row]] = {
    "link": LINKS.record,
    "qr": QR_CODES.record,
    "import": _read_import,
    **{stored.words.path: stored.record for stored in CARRIED},
}
_TABLES = {"link": "links", "qr": "kept_qrs"} | {stored.words.path: stored.words.table for stored in CARRIED}
# Members of a deleted row, where columns and members have the same name.
_STORED = ("id", "alias", "url", "title", "name", "slug", "code", "type", "host", "tag")


# Columns whose members have other names or forms: the name, and the value of a member from that of
# the column
_OF_COLUMNS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "starts": ("starts", timestamp),
    "expiry": ("expiry", timestamp),
    "blocked": ("blocked", timestamp),
    "geotarget": ("geotarget", partial(link_records.targets, "location")),
    "devicetarget": ("devicetarget", partial(link_records.targets, "device")),
    "languagetarget": ("languagetarget", partial(link_records.targets, "language")),
    "parameters": ("parameters", lambda pairs: [{"name": name, "value": value} for name, value in pairs]),
    "splash_id": ("type", str),
    "overlay_id": ("type", "overlay-{}".format),
    "logo_source": ("logo", str),
    "custom": ("", bool),  # `alias` has the change
}
# Values of members whose column is NULL
_NULLS = {"type": "splash", "pixels": [], "slug": "", "logo": "", "maxclicks": 0}
_FILTERS = ("campaign", "channel", "domain")


def move() -> bool:
    """Move a batch of events. Return True if it was full, so that there may be more."""
    pending = outbox.pending(MAX_BATCH)
    if not pending:
        return False
    subscriptions = outbox.subscriptions(list({event["user_id"] for event in pending}))
    owner = itemgetter("user_id")
    by_user = {
        user_id: list(group) for user_id, group in groupby(sorted(subscriptions, key=owner), key=owner)
    }
    outbox.move([part for event in pending for part in _parts(event, by_user.get(event["user_id"], []))])
    return len(pending) == MAX_BATCH


def _parts(event: Row, webhooks: list[Row]) -> list[Row]:
    """Return the event as `outbox.move` takes it: a part for each data that webhooks get. The
    record is read only if a webhook subscribes to it."""
    if event["user_id"] < outbox.TRAIL:
        return [activity.of_audit(event)]
    moved = {name: event[name] for name in ("id", "user_id", "type", "created")}
    subscribed = [webhook for webhook in webhooks if _subscribes(webhook, event)]
    if event["user_id"] == outbox.TRAIL:
        received: list[tuple[Any, list[Row]]] = [(event["data"], [])]
    else:
        received = _received(event, subscribed) if subscribed else []
    parts = []
    for data, receivers in received:
        extra, ids = _extra(event, data), [webhook["id"] for webhook in receivers if webhook["has_url"]]
        readers = {webhook["id"] for webhook in receivers}
        if activity.READER in readers:
            parts.append(activity.of_record(event, data, extra.get("changes", {})))
        if readers != {activity.READER}:
            shortened = _shortened(data, MAX_DATA - len(orjson.dumps(extra)))
            parts.append(moved | {"data": shortened, "extra": extra, "stored": True, "webhooks": ids})
    return parts or [moved | {"data": {}, "extra": {}, "stored": False, "webhooks": []}]


def _extra(event: Row, data: Row) -> Row:
    """Return the members of an event beside its data: who changed a row, and what."""
    subject, _, change = event["type"].partition(".")
    if change not in ("created", "updated", "changed", "deleted") and subject != "audit":
        return {}
    # The events of users and reports are for other administrators.
    owner = None if subject in ("user", "audit", "report") else event["user_id"]
    extra = {"actor": event["actor"] or {"user": owner, "key": None}}
    is_changed = change == "updated" or (change == "changed" and event["stored"])
    changes = _changes(event["data"] or {}, data) if is_changed else {}
    is_small = len(orjson.dumps(changes)) <= MAX_DATA // 2
    return extra | ({"changes": changes} if changes and is_small else {})


def _changes(before: Row, record: Row) -> Row:
    previous: Row = {}
    for column, value in before.items():  # `type` comes before the ids of its pages
        name, convert = _OF_COLUMNS.get(column, (column, lambda same: same))
        if value is not None:
            previous[name] = convert(value)
        else:
            previous.setdefault(name, settings().base_url if name == "domain" else _NULLS.get(name))
    return {
        name: [value, record[name]]
        for name, value in previous.items()
        if name in record and record[name] != value
    }


def _subscribes(webhook: Row, event: Row) -> bool:
    if event["type"] == TEST:
        return bool(webhook["id"] == event["object_id"])
    if webhook["id"] == activity.READER and not activity.is_noted(event):
        return False
    return matches(webhook["events"], event["type"])


def _received(event: Row, webhooks: list[Row]) -> list[tuple[Any, list[Row]]]:
    if event["type"] in ("visit", "scan"):
        return _visits(event, webhooks)
    try:
        data, rows = _record(event)
    except Exception as error:
        if isinstance(error, psycopg2.Error) and is_connection_lost(error):
            raise
        # An event that cannot be read must not stop the others.
        current_app.logger.error("the record of an event cannot be read", exc_info=error)
        data, rows = {"id": event["object_id"]}, []
    receivers = [webhook for webhook in webhooks if event["type"] == TEST or _passes(webhook, rows)]
    return [(data, receivers)] if receivers else []


def _record(event: Row) -> tuple[Any, list[Row]]:
    path, _, change = event["type"].partition(".")
    if path in _OTHERS:
        return _OTHERS[path](event)
    if event["object_id"] is None or event["type"] == TEST:
        return event["data"], []
    if change == "deleted":
        stored = event["data"]
        ids = {
            "campaign": stored.get("campaign"),
            "domain": stored.get("domain_id"),
            path: event["object_id"],
        }
        return _deleted(path, stored), [ids]
    stored = event["stored"]
    with as_written(_TABLES[path], stored) if stored else nullcontext():
        try:
            record = _READ[path](event["user_id"], event["object_id"])
        except AppError:  # deleted since
            return {"id": event["object_id"]}, [{path: event["object_id"]}]
        tracked = (
            outbox.tracked_rows(event["user_id"], [event["object_id"]]) if path in ("link", "qr") else []
        )
        return record, tracked or [{path: event["object_id"]}]


def _conversion(event: Row) -> tuple[Row, list[Row]]:
    record = event["stored"] or event["data"]  # `data` has the previous values of a change by hand
    times = {name: timestamp(record[name]) for name in ("click", "date", "updated")}
    return record | times, outbox.tracked_rows(event["user_id"], [record["link"]])


def _public_page(event: Row) -> tuple[Row, list[Row]]:
    page, link_id = event["stored"], event["stored"]["link"]
    tracked = outbox.tracked_rows(event["user_id"], [link_id]) if link_id else [page]
    return page | {"name": page["name"] or _short_url(next(iter(tracked), None))}, tracked


def _answer(event: Row) -> tuple[Row, list[Row]]:
    stored = event["data"]
    members = {"id": stored["id"], "overlay": stored["overlay_id"], "answer": stored["answer"]}
    return members | {"date": timestamp(stored["created"])}, []


# By the first word of their types: the data of events that are of no resource
_OTHERS = {"conversion": _conversion, "public": _public_page, "answer": _answer}


def _deleted(path: str, stored: Row) -> Row:
    record = {name: stored[name] for name in _STORED if name in stored}
    if path == "link":
        domain = stored.get("domain") or settings().base_url
        record |= {"shorturl": short_url(domain, stored["alias"]), "domain": domain}
    return record


def _visits(event: Row, webhooks: list[Row]) -> list[tuple[Any, list[Row]]]:
    tracked = {
        row["id"]: row
        for row in outbox.tracked_rows(event["user_id"], [visit["id"] for visit in event["data"]])
    }
    groups: dict[tuple[int, ...], tuple[list[Row], list[Row]]] = {}
    for visit in event["data"]:
        row = tracked.get(visit["id"])
        receivers = [webhook for webhook in webhooks if _passes(webhook, [row] if row else [])]
        if receivers:
            visits, _ = groups.setdefault(tuple(webhook["id"] for webhook in receivers), ([], receivers))
            visits.append(with_code(visit) | {"time": timestamp(visit["time"]), "shorturl": _short_url(row)})
    return [(data, receivers) for visits, receivers in groups.values() for data in _halved(visits)]


def _halved(visits: list[Row]) -> list[Any]:
    data, middle = {"visits": visits}, len(visits) // 2
    if not middle or len(orjson.dumps(data)) <= MAX_DATA:
        return [data]
    return [*_halved(visits[:middle]), *_halved(visits[middle:])]


def _short_url(row: Row | None) -> str:
    return (row["host"] or settings().base_url) + row["path"] if row else ""


def _passes(webhook: Row, rows: list[Row]) -> bool:
    return all(
        any(
            selected == row.get(name) or (name == "channel" and selected in (row.get(name) or ()))
            for row in rows
        )
        for name in _FILTERS
        if (selected := webhook[name]) is not None
    )


def _shortened(data: Any, size: int) -> Any:
    while len(orjson.dumps(data)) > size:
        largest = max(data, key=lambda name: len(orjson.dumps(data[name])))
        data = {name: value for name, value in data.items() if name != largest} | {"truncated": True}
    return data
