"""Visits of an exported account, in the form in which visits are stored."""

import re
from datetime import UTC, datetime
from typing import Any

from linkmgr.db.statements import Row
from linkmgr.fields.countries import NAMES
from linkmgr.fields.languages import LANGUAGES
from linkmgr.imports.visits import MAX_AGE
from linkmgr.repository.visits import UNKNOWN
from linkmgr.visits import bots
from linkmgr.visits import record as visit_record

_LABELS = ("city", "referrer", "browser", "os")
# Rollups bound the labels above. The others, and the names of bots, are from lists that are bounded.
_COUNTRIES = {*NAMES, *(name for names in NAMES.values() for name in names)}  # some databases have only codes
_LOWER_COUNTRIES = {name.lower(): names[0] for names in NAMES.values() for name in names}
_DEVICES = {"phone", "tablet", "desktop"}
_LANGUAGES = {name.capitalize() for name in LANGUAGES.values()}
_DIGEST = re.compile("(?:[0-9a-f]{2}){0,32}")


def convert(user_id: int, tracked_id: int, record: Row) -> Row | None:
    """Return the visit, or None if it cannot be stored. `visitor` remains the same digest."""
    try:
        at = datetime.fromisoformat(str(record.get("time"))).replace(tzinfo=UTC)
    except ValueError:
        return None
    now = datetime.now(UTC)
    visitor = str(record.get("visitor"))
    if not now - MAX_AGE < at <= now or not _DIGEST.fullmatch(visitor):
        return None
    is_bot = record.get("bot") is True
    labels = {name: _label(record.get(name)) for name in _LABELS}
    if is_bot:
        labels["browser"] = bots.name(labels["browser"])
    country = _label(record.get("country"))
    return {
        "tracked_id": tracked_id,
        "user_id": user_id,
        "at": at.timestamp(),
        "visitor": visitor,
        **labels,
        "country": country if country in _COUNTRIES else _LOWER_COUNTRIES.get(country.lower(), UNKNOWN),
        "device": _known(record.get("device"), _DEVICES),
        "language": _known(record.get("language"), _LANGUAGES),
        "social": visit_record.social(labels["referrer"]),
        "bot": is_bot,
    }


def _label(value: Any) -> str:
    return value[: visit_record.MAX_LABEL].replace("\0", "") if isinstance(value, str) else UNKNOWN


def _known(value: Any, labels: set[str]) -> str:
    return value if isinstance(value, str) and value in labels else UNKNOWN
