"""Columns that no member takes, and whose names say that a link may be closed: by a secret, a time
or a state.

A list of names would never be complete, so names are compared by the words in them. The link of a
row fails if such a column has another value than one that means open.
"""

import re
from collections.abc import Container, Iterable
from datetime import UTC, datetime
from functools import lru_cache

from linkmgr.features.imports import figures, states
from linkmgr.features.imports.cells import Cells
from linkmgr.features.imports.rows import Inactive
from linkmgr.features.imports.sources import normalize

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")
_OPEN = {
    "active", "all", "always", "anyone", "approved", "default", "enabled", "everyone", "live", "normal", "ok", "on",
    "online", "open", "public", "published", "running", "unlimited", "unlocked", "valid", "verified", "visible",
}  # fmt: skip
_NEVER = {"", "-1", "never", "no limit", "no expiry"}
_HTTP = re.compile("[23][0-9]{2}")  # the status of a redirect

# Patterns of names such as "_password_hash_": words that stand alone, and beginnings that are in
# longer words too.
_HIDDEN = r"passw|passcode|passphrase|(?<![a-z])(?:pass|pwds?|pin|pincode|pins)(?![a-z])|secret(?!ar)|protect"
_END = (
    r"expir|not_?after|deadline|valid_?(?:to|till|until|thru)|end_?(?:date|time|at)(?![a-z])"
    r"|(?<![a-z])(?:end|ends|ended|until|till|ttl|closes|closed)(?![a-z])"
)
_LIMIT = r"(?<![a-z])(?:max|limit|remaining)(?![a-z])|(?:clicks?|visits?|uses?|views?)_?(?:limit|left|max)"
_STATE = r"^_(?:\w*_)?(?:status|state|visibility|privacy|availability)_$|^_access(?:_?level|_?type|_?mode)?_$"
_CLOSED = (
    r"private|hidden|archiv|unlisted|unpublish|restrict|one_?time|single_?use|members?_?only"
    r"|(?<![a-z])(?:banned|blocked|deleted|disabled|draft|expired|inactive|locked|once|paused|suspended|trashed)(?![a-z])"
)
_BEGINS = (
    r"not_?before|(?:activat\w*?|active|available|begin\w*?|go_?live|launch\w*?|live|open|publish\w*?|release\w*?"
    r"|schedul\w*?|starts?|valid)_?(?:from|at|on|since|date|time)(?![a-z])"
    r"|(?<![a-z])(?:begins|opens|starts?|scheduled)(?![a-z])"
)
_OPENS = r"(?<![a-z])(?:is_?)?(?:active|available|enabled|live|open|public|published|visible|shared)(?![a-z])"
_KINDS = {
    kind: re.compile(pattern)
    for kind, pattern in (
        ("secret", _HIDDEN), ("begin", _BEGINS), ("end", _END), ("limit", _LIMIT), ("state", _STATE),
        ("closed", _CLOSED), ("open", _OPENS),
    )
}  # fmt: skip
# Last words that name people, numbers and other targets instead
_OTHER = re.compile(
    r"_(?:by|id|ids|uuid|email|emails|count|counts|total|stats|clicks|url|urls|image|color|label|link)_$"
)


@lru_cache(maxsize=1024)
def kind_of(name: str) -> str:
    """Return what the name of a column says of a link, or ""."""
    words = "_".join(["", *filter(None, (word.lower() for word in _WORDS.split(name[:100]))), ""])
    if not _KINDS["secret"].search(words) and _OTHER.search(words):
        return ""
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(words)), "")


def check(cells: Cells, used: Container[str]) -> None:
    """Raise Inactive for a link with a condition that no member takes."""
    for column in cells:
        if column in used:
            continue
        name = cells.name(column)
        if (kind := kind_of(name)) and not _is_open(kind, cells.text(column).strip().lower()):
            raise Inactive(
                f"has a value in '{name}', which says that the link may be closed, and which no "
                "member takes. Map the column, ignore it, or leave the row out."
            )


def asked(columns: Iterable[str], used: Container[str]) -> list[str]:
    """Return the columns whose values may make rows fail."""
    return [name for name in columns if normalize(name) not in used and kind_of(name)]


def _is_open(kind: str, text: str) -> bool:
    if not text or text in _NEVER:
        return True
    match kind:
        case "begin":
            return text in _OPEN or states.is_true(text) is False or _has_begun(text)
        case "open":
            return text in _OPEN or _has_begun(text) or text in ("1", "true", "t", "yes", "y")
        case "state":
            return text in _OPEN or _HTTP.fullmatch(text) is not None or text in ("1", "true", "expired")
        case _:
            return not states.is_true(text) or (kind != "secret" and text in _OPEN)


def _has_begun(text: str) -> bool:
    try:
        begins = figures.utc(text)
    except ValueError:
        return False
    return begins is not None and begins <= f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
