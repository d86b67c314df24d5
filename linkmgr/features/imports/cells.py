"""Values of an entry: as text, by normalized name, and as columns of the report of failed rows."""

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

import orjson

from linkmgr.features.imports.rows import Unreadable
from linkmgr.features.imports.sources import MAX_NAME, normalize

_NO_VALUES = ("", "null", "none", "nil", "(null)", r"\n")  # in lower case
CUT = "… [cut]"  # the end of a cell that the report has in part
REMOVED = "[removed]"  # a password in the report
MAX_TEXT = 1 << 16  # characters of a row; a body of the API has at most 64 KiB
_SECRET = re.compile(r"passw|pwd|secret|token", re.IGNORECASE)
_ADDRESSES = ("ip", "ipaddress")
_MAX_CELL = 5000  # characters of a cell of a row that is longer


def as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return orjson.dumps(value).decode() if isinstance(value, bool | dict | list) else str(value)
    except orjson.JSONEncodeError:
        raise Unreadable("has a value that is nested in too many others. Leave it out.") from None


def value(text: str) -> str:
    """Return a cell without the spaces around it, or "" for the words that SQL tools write for no
    value."""
    text = text.strip()
    return "" if text.lower() in _NO_VALUES else text


class Cells:
    """The cells of a row by normalized column: of columns with the same, the first."""

    def __init__(self, texts: dict[str, str], *, has_words_for_null: bool = True) -> None:
        self._texts, self._has_words = texts, has_words_for_null
        self._names = {normalize(name): name for name in reversed(texts)}

    def __contains__(self, column: str) -> bool:
        return column in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def name(self, column: str) -> str:
        return self._names.get(column, column)

    def word(self, column: str) -> str:
        """Return a text as the source has it, even if it is a word for no value."""
        return self._texts[self._names[column]].strip() if column in self._names else ""

    def text(self, column: str) -> str:
        return value(self.word(column)) if self._has_words else self.word(column)


def first_text(value: list[Any]) -> str | None:
    return next((text for text in value if isinstance(text, str)), None)


def expand(entry: Mapping[str, Any], nested: Container[str] = ()) -> dict[str, Any]:
    """Return the values by name, and those of objects by names such as `meta.validUntil`. Objects
    in the columns `nested` remain."""
    values: dict[str, Any] = {}
    for name, value in entry.items():
        # Each member repeats the name.
        if value and isinstance(value, dict) and len(name) <= MAX_NAME and normalize(name) not in nested:
            values |= {f"{name}.{inner}": inside for inner, inside in value.items()}
        else:
            values[name] = value
    return values


def columns(values: Mapping[str, Any], of_text: Container[str] = ()) -> dict[str, str]:
    return {
        name: value
        if isinstance(value, str)
        else as_text(first_text(value) if isinstance(value, list) and normalize(name) in of_text else value)
        for name, value in values.items()
    }


def report(texts: dict[str, str], secrets: Container[str] = ()) -> dict[str, str]:
    """Return the columns for the report of a row that failed, without passwords and IP addresses.
    `secrets` are normalized columns of passwords, besides those whose name says so."""
    if sum(map(len, texts)) + sum(map(len, texts.values())) > MAX_TEXT:
        texts = dict(_shorten(texts))
    return {name: _without_secret(normalize(name), text, secrets) for name, text in texts.items()}


def _shorten(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    left = MAX_TEXT
    for name, text in texts.items():
        cell = text if len(text) <= _MAX_CELL else f"{text[:_MAX_CELL]}{CUT}"
        left -= len(name) + len(cell)
        if left < 0:
            return
        yield name, cell


def is_secret(text: str) -> bool:
    return _SECRET.search(text) is not None


def _without_secret(name: str, text: str, names: Container[str]) -> str:
    if name in _ADDRESSES:
        return ""
    is_flag = value(text).lower() in ("", "true", "false", "0", "1")
    return REMOVED if not is_flag and (name in names or is_secret(name)) else text
