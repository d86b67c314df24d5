"""Visits of another service or an exported account, in the form in which visits are stored."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from linkmgr.core.database.statements import Row
from linkmgr.features.conversions.amounts import CURRENCIES
from linkmgr.features.conversions.repository import DEFAULT_EVENT, MAX_EVENT, MAX_ORDER, MAX_VALUE, PROBLEMS
from linkmgr.features.imports import stored_rows as imported
from linkmgr.features.imports.rows import RawVisit
from linkmgr.visits import bots, counting
from linkmgr.visits import store as visits
from linkmgr.visits.dimensions import DIMENSIONS, MAX_LABEL, UNKNOWN

MAX_AGE = timedelta(days=3653)  # each month has a partition; older visits remain in `imported_clicks`
_DIGEST = re.compile("(?:[0-9a-f]{2}){0,32}")


def convert(user_id: int, link_id: int, raw: list[RawVisit]) -> list[Row]:
    return [
        counting.imported(link_id, user_id, **visit._asdict() | {"at": at})
        for visit in raw
        if (at := _timestamp(visit.at))
    ]


def _timestamp(text: str) -> float | None:
    try:
        at = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None
    now = datetime.now(UTC)
    return at.timestamp() if now - MAX_AGE < at <= now else None


def restore(user_id: int, tracked_id: int, record: Row) -> Row | None:
    """Return a visit of an exported account, or None if it cannot be stored. `visitor` remains the
    same digest."""
    at = _timestamp(str(record.get("time")))
    visitor = str(record.get("visitor"))
    if at is None or not _DIGEST.fullmatch(visitor):
        return None
    is_bot = record.get("bot") is True
    labels = {d.name: d.labels.restored(_label(record.get(d.name))) for d in DIMENSIONS}
    if is_bot:
        labels["browser"] = bots.name(labels["browser"])
    return {
        "tracked_id": tracked_id,
        "user_id": user_id,
        "at": at,
        "visitor": visitor,
        **labels,
        "social": counting.social(labels["referrer"]),
        "bot": is_bot,
    }


def restore_conversion(record: Row) -> Row | None:
    """Return a conversion of an exported account, or None if it cannot be stored."""
    labels, value = record.get("labels"), record.get("value")
    click, at = (_timestamp(str(record.get(name))) for name in ("click", "date"))
    is_amount = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_VALUE
    if click is None or at is None or not (is_amount or value is None) or not isinstance(labels, dict):
        return None
    return {
        "link": record["link"],
        "click": datetime.fromtimestamp(click, UTC).isoformat(),
        "at": datetime.fromtimestamp(at, UTC).isoformat(),
        "event": _text(record.get("event"), MAX_EVENT) or DEFAULT_EVENT,
        "order_id": _text(record.get("order"), MAX_ORDER),
        "value": value,
        "currency": currency if (currency := _text(record.get("currency"), 3)) in CURRENCIES else "",
        "source": "page" if record.get("source") == "page" else "key",
        "problem": problem if (problem := record.get("problem")) in PROBLEMS else "",
        "labels": {
            d.name: d.labels.restored(_label(labels[d.name])) for d in DIMENSIONS if labels.get(d.name)
        },
    }


def _text(value: Any, most: int) -> str:
    return value.replace("\0", "")[:most] if isinstance(value, str) else ""


def _label(value: Any) -> str:
    return value[:MAX_LABEL].replace("\0", "") if isinstance(value, str) else UNKNOWN


def store(user_id: int, converted: list[Row]) -> int:
    """Store visits in a transaction, and subtract those of people from the clicks that the source
    counted. Return the number of visits that were stored. Those beyond the clicks of the plan are
    not."""
    refused = visits.add_imported(user_id, orjson.dumps(converted).decode())
    people = Counter(visit["tracked_id"] for visit in converted if not visit["bot"])
    people.subtract({row["tracked_id"]: row["visits"] for row in refused if not row["bot"]})
    if people:
        imported.subtract_clicks(user_id, dict(people))
    return len(converted) - sum(int(row["visits"]) for row in refused)


def create_partitions(converted: list[Row]) -> None:
    visits.create_partitions_for(orjson.dumps(converted).decode())
