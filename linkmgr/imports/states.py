"""States of a link at its source that linkmgr does not have. Without them, the link would be open to all here."""

from datetime import UTC, datetime

from linkmgr.imports import figures
from linkmgr.imports.cells import Cells
from linkmgr.imports.rows import Inactive

_FALSE = ("false", "f", "no", "n", "off", "[]", "{}", "0", "0.0", "0000-00-00 00:00:00")
_ENDED = ("banned", "blocked", "deleted", "disabled", "inactive", "paused", "removed", "suspended", "trashed")
_STATES = {word: f"is {word}" for word in (*_ENDED, "draft", "pending", "scheduled", "trash", "unpublished")}
_STATES["expired"] = "has expired"
_RULES = "hasredirectrules redirectrules hasrules rules spliturl splitpercent testvariants"

# Normalized columns
_MARKS = {column: _STATES[word] for word in _ENDED for column in (word, f"is{word}", f"{word}at")}
_MARKS |= dict.fromkeys(("expired", "isexpired"), _STATES["expired"])
_MARKS |= dict.fromkeys(_RULES.split(), "has rules that choose its target")
_ACTIVE = ("active", "isactive", "enabled", "isenabled")
_STATUS = ("status", "state", "linkstatus")
_STARTS = ("validsince", "metavalidsince", "validfrom", "startsat", "startat", "startdate", "activefrom", "publishat")
LIMITS = ("maxvisits", "metamaxvisits", "clickslimit", "clicklimit", "maxclicks", "visitlimit", "maxuses")
_PASSWORDS = ("haspassword", "passwordprotected", "ispasswordprotected", "isprotected", "secretkey")
WATCHED = {*_MARKS, *_ACTIVE, *_STATUS, *_STARTS, *LIMITS, *_PASSWORDS}


def check(cells: Cells, clicks: int | None, *, has_expiry: bool) -> None:
    """Raise Inactive for a link that has ended, has not begun, or works only under conditions. An expiry keeps that
    the link has expired."""
    for column in filter(WATCHED.__contains__, cells):
        state = _state(column, cells.text(column).lower(), clicks)
        if state and not (state == _STATES["expired"] and has_expiry):
            raise Inactive(f"{state} at the source. Leave the row out, or empty its column '{cells.name(column)}'.")


def has_password(cells: Cells) -> bool:
    return any(is_true(cells.text(column)) for column in _PASSWORDS)


def is_true(text: str) -> bool:
    """Return True unless a flag is empty or a word for false. The time at which it was set is true."""
    return bool(text) and text.lower() not in _FALSE


def _state(column: str, text: str, clicks: int | None) -> str:
    if column in _STARTS:
        return "is not valid yet" if _is_later(text) else ""
    if column in LIMITS:
        return _limit(figures.count(text) or 0, clicks)
    if column in _STATUS:
        return _STATES.get(text, "")
    if column in _ACTIVE:
        return "is not active" if text and not is_true(text) else ""
    return _MARKS.get(column, "") if is_true(text) else ""


def _is_later(text: str) -> bool:
    start = figures.time(text, "a start", end_of_day=False)
    return start is not None and start > f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"


def _limit(limit: int, clicks: int | None) -> str:
    if limit and clicks is None:
        return f"is limited to {limit:,} clicks, and the number of its clicks is unknown"
    return f"has used up its {limit:,} clicks" if limit and clicks is not None and clicks >= limit else ""
