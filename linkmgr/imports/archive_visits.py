"""Visits of an exported account, in the form in which visits are stored."""

import re
from datetime import UTC, datetime
from typing import Any

from linkmgr.db.statements import Row
from linkmgr.imports.visits import MAX_AGE
from linkmgr.repository.visits import UNKNOWN
from linkmgr.visits import record as visit_record

_LABELS = ("country", "city", "referrer", "browser", "os", "device", "language")
_DIGEST = re.compile("(?:[0-9a-f]{2}){0,32}")


def convert(user_id: int, target_id: int, record: Row) -> Row | None:
    """Return the visit, or None if it cannot be stored. `visitor` remains the same digest."""
    try:
        at = datetime.fromisoformat(str(record.get("time"))).replace(tzinfo=UTC)
    except ValueError:
        return None
    now = datetime.now(UTC)
    visitor = str(record.get("visitor"))
    if not now - MAX_AGE < at <= now or not _DIGEST.fullmatch(visitor):
        return None
    labels = {name: _label(record.get(name)) for name in _LABELS}
    return {
        "target_id": target_id,
        "user_id": user_id,
        "at": at.timestamp(),
        "visitor": visitor,
        **labels,
        "social": visit_record.social(labels["referrer"]),
        "bot": record.get("bot") is True,
    }


def _label(value: Any) -> str:
    return value[: visit_record.MAX_LABEL].replace("\0", "") if isinstance(value, str) else UNKNOWN
