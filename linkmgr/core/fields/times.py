"""Times in the forms that programming languages print.

None of them is ambiguous. A month is a name or follows a year of four digits, and a time zone is an
offset or UTC, because abbreviations such as CST have several meanings.
"""

import re
from datetime import UTC, datetime

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_YEAR, _DAY = r"(?P<year>\d{4})", r"(?P<day>\d\d?)"
_MONTH = f"(?P<month>{'|'.join(map(str.title, _MONTHS))})"
_WEEKDAY = "(?P<weekday>Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_TIME = r"(?P<time>(?:[01]\d|2[0-3]):\d\d(?::\d\d(?:[.,]\d+)?)?)"
_OFFSET = r"[+-]\d\d(?::?[0-5]\d)?"
# The name of the zone can follow its offset, and Go adds the reading of its monotonic clock.
_ZONE = (
    rf"(?: ?(?P<zone>Z|(?:UTC?|GMT)(?:{_OFFSET})?|{_OFFSET})(?:(?<=\d) (?:[A-Z]{{2,5}}|[+-]\d\d(?:\d\d)?))?"
    r"(?: ?\[[\w/+-]+\]| \([\w .+-]+\))?(?: m=[+-]\d+\.\d+)?)?"
)
_FORMS = (
    rf"{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)(?:[T ]{_TIME}{_ZONE})?",  # ISO 8601, RFC 3339 and most languages
    rf"{_YEAR}/(?P<month>\d\d?)/(?P<day>\d\d?)(?:[T ]{_TIME}{_ZONE})?",
    rf"(?:{_WEEKDAY}(?:[a-z]{{3,6}})?,? )?{_DAY}[ -]{_MONTH}[ -]{_YEAR} {_TIME}{_ZONE}",  # RFC 2822 and HTTP
    rf"{_WEEKDAY} {_MONTH} {{1,2}}{_DAY} {_YEAR} {_TIME}{_ZONE}",  # JavaScript
    rf"{_WEEKDAY} {_MONTH} {{1,2}}{_DAY} {_TIME}{_ZONE} {_YEAR}",  # C and Java
)
_PATTERNS = tuple(re.compile(form, re.ASCII | re.IGNORECASE) for form in _FORMS)


def iso(timestamp: str) -> str:
    return f"{timestamp.replace(' ', 'T')}Z"


def pattern() -> str:
    """Return the pattern of all forms, as JSON Schema writes it: without names of groups and
    lookbehind."""
    return re.sub(r"\(\?P<\w+>", "(?:", "|".join(_FORMS)).replace(r"(?<=\d)", "")


def parse_time(text: str, *, end_of_day: bool = True) -> datetime:
    """Return the time, in UTC unless it names a time zone. A date alone means the end of that day,
    or its beginning.

    Raise ValueError if the text has none of the forms.
    """
    match = next(filter(None, (pattern.fullmatch(text) for pattern in _PATTERNS)), None)
    if match is None:
        raise ValueError("no known form")
    parts = match.groupdict()
    month = parts["month"].lower()
    number = _MONTHS.index(month) + 1 if month in _MONTHS else int(month)
    offset = re.search(r"[+-].*", parts["zone"] or "")
    clock = parts["time"] or ("23:59:59" if end_of_day else "00:00:00")
    time = datetime.fromisoformat(
        f"{parts['year']}-{number:02}-{int(parts['day']):02}T{clock}{offset[0] if offset else '+00:00'}"
    )
    if (weekday := parts.get("weekday")) and _WEEKDAYS[time.weekday()] != weekday.lower():
        raise ValueError("another day of the week")
    return time.astimezone(UTC)
