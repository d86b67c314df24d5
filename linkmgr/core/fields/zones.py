"""Time zones, and times that clients send in one. Python calculates with zones, and SQL does not,
so that one time zone database decides."""

import re
from datetime import UTC, date, datetime, time, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.unknown import nearest

DATE_OR_TIME = (
    "20[0-9]{2}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
TIME = f"^{DATE_OR_TIME}$"  # of a parameter
_PATTERN = re.compile(DATE_OR_TIME)


@cache
def _zone_names() -> set[str]:
    return available_timezones() - {"Factory", "localtime"}  # files of the host, not of the IANA database


@cache
def regional_zones() -> list[str]:
    regions = [
        "Africa",
        "America",
        "Antarctica",
        "Asia",
        "Atlantic",
        "Australia",
        "Europe",
        "Indian",
        "Pacific",
    ]
    return ["UTC", *sorted(name for name in _zone_names() if name.partition("/")[0] in regions)]


def parse_zone(name: str) -> ZoneInfo:
    if name not in _zone_names():
        similar = nearest(name, _zone_names(), 3, 0.6) or ["Europe/Berlin", "America/New_York", "UTC"]
        raise invalid(f"timezone must be an IANA time zone such as {', '.join(similar)}", "unknown_value")
    return ZoneInfo(name)


def parse_time(name: str, text: str, zone: tzinfo = UTC) -> datetime:
    try:
        parsed = datetime.fromisoformat(text) if _PATTERN.fullmatch(text) else None
    except ValueError:
        parsed = None
    if parsed is None:
        example = "2026-11-21, 2026-11-21T09:30 or 2026-11-21T09:30:00Z"
        raise invalid(f"{name} must be a date or time from 2000 to 2099, such as {example}")
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=zone)).astimezone(UTC)


def start_of_day(day: date, zone: ZoneInfo) -> datetime:
    """Return the first moment of a local day, also if midnight does not exist or exists twice."""
    return datetime.combine(day, time(), zone).astimezone(UTC)
