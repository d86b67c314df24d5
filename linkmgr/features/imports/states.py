"""States of a link at its source that linkmgr does not have. Without them, the link would be open
to all here."""

from collections.abc import Collection

from linkmgr.features.imports.cells import Cells
from linkmgr.features.imports.rows import Inactive

_FALSE = ("false", "f", "no", "n", "off", "[]", "{}", "0", "0.0", "0000-00-00 00:00:00")
_ENDED = ("banned", "blocked", "deleted", "disabled", "inactive", "paused", "removed", "suspended", "trashed")
_STATES = {word: f"is {word}" for word in (*_ENDED, "draft", "pending", "scheduled", "trash", "unpublished")}
_STATES["expired"] = "has expired"
_HAS_RULES = "hasredirectrules"  # without the rules
_RULES = f"{_HAS_RULES} redirectrules hasrules rules spliturl splitpercent testvariants"

# Normalized columns
_MARKS = {column: _STATES[word] for word in _ENDED for column in (word, f"is{word}", f"{word}at")}
_MARKS |= dict.fromkeys(("expired", "isexpired"), _STATES["expired"])
_MARKS |= dict.fromkeys(_RULES.split(), "has rules that choose its target")
_ACTIVE = ("active", "isactive", "enabled", "isenabled")
STATUS = ("status", "state", "linkstatus")  # with words of any service, of which `check` knows some
_PASSWORDS = ("haspassword", "passwordprotected", "ispasswordprotected", "isprotected", "secretkey")
WATCHED = {*_MARKS, *_ACTIVE, *STATUS, *_PASSWORDS}


def check(cells: Cells, kept: Collection[str], *, has_expiry: bool, has_rules: bool = False) -> None:
    """Raise Inactive for a link that has ended or works only under conditions. An expiry keeps that
    the link has expired. `kept` are the columns of rules that linkmgr can read."""
    for column in filter(WATCHED.difference(kept).__contains__, cells):
        state = _state(column, cells.text(column).lower())
        is_kept = has_expiry if state == _STATES["expired"] else column == _HAS_RULES and has_rules
        if state and not is_kept:
            remedy = f"Leave the row out, or empty its column '{cells.name(column)}'."
            if column == _HAS_RULES:
                remedy = f"Read the links from the API of Shlink, which has the rules. {remedy}"
            raise Inactive(f"{state} at the source. {remedy}")


def has_password(cells: Cells) -> bool:
    return any(is_true(cells.text(column)) for column in _PASSWORDS)


def is_true(text: str) -> bool:
    """Return True unless a flag is empty or a word for false. The time at which it was set is
    true."""
    return bool(text) and text.lower() not in _FALSE


def _state(column: str, text: str) -> str:
    if column in STATUS:
        return _STATES.get(text, "")
    if column in _ACTIVE:
        return "is not active" if text and not is_true(text) else ""
    return _MARKS.get(column, "") if is_true(text) else ""
