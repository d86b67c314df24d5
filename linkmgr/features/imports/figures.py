"""Times and numbers in the forms that sources write."""

import re
from datetime import UTC, datetime

from linkmgr.core.fields.times import parse_time
from linkmgr.features.imports import cells
from linkmgr.features.imports.rows import Unreadable

_EPOCH = re.compile(r"(\d{9,10}|\d{13}|\d{16})(?:\.\d+)?", re.ASCII)
_DAY_FIRST = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})(?:,? (.+))?", re.ASCII)
# Digits in groups of three, or without groups. Decimals are zeros of a spreadsheet, and never
# three.
_COUNT = re.compile(r"(\d{1,3}([,.'\u2019\u00a0\u202f ])\d{3}(?:\2\d{3})*|\d{1,18})(?:[.,]0{0,2})?", re.ASCII)
_NEVER = ("0", "0.0", "never", "0000-00-00 00:00:00", "0000-00-00")
_UTC = "%Y-%m-%d %H:%M:%S"


def utc(text: str, *, end_of_day: bool = False) -> str | None:
    """Return a time as UTC text, or None for none. Raise ValueError if it has no known form."""
    text = cells.value(text)
    if not text or text.lower() in _NEVER:
        return None
    if epoch := _EPOCH.fullmatch(text):
        seconds = int(epoch[1]) / 1000 ** ((len(epoch[1]) - 8) // 3)
        return datetime.fromtimestamp(seconds, UTC).strftime(_UTC)
    if day_first := _DAY_FIRST.fullmatch(text):
        day, month, year, time = day_first.groups()
        text = f"{year}-{month:0>2}-{day:0>2}{f' {time}' if time else ''}"
    try:
        time = parse_time(text, end_of_day=end_of_day)
    except OverflowError:
        raise ValueError from None
    return f"{time.year:04}{time.strftime(_UTC[2:])}"


def time(text: str, what: str, *, end_of_day: bool) -> str | None:
    try:
        return utc(text, end_of_day=end_of_day)
    except ValueError:
        raise Unreadable(
            f"has {what} in an unknown format: '{text[:50]}'. Write it as 2030-12-31 23:59:59."
        ) from None


def count(text: str) -> int | None:
    text = cells.value(text)
    if not text or text.lower() in _NEVER[2:]:
        return None
    if not (match := _COUNT.fullmatch(text)):
        raise Unreadable(
            f"has clicks that are not a number: '{text[:50]}'. Write it as 1234, or leave it empty."
        )
    return int(re.sub(r"\D", "", match[1]))
