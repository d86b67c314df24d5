"""The periodic look for what users get a message about: keys that expire, limits that are reached,
and weekly reports. It reads some users at a time."""

from datetime import UTC, date, datetime, timedelta
from time import monotonic

from linkmgr.core.database.jobs import Handler, Later
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.zones import parse_zone
from linkmgr.core.settings import settings
from linkmgr.core.web import rate_windows
from linkmgr.features.mail import repository
from linkmgr.features.mail.outgoing import notify

SECONDS = 1800  # between two looks
MAX_WAITING = 1000  # messages; more are enqueued when these are sent
_EARLIEST, _LATEST = 6, 54  # hours of the week in which a report is enqueued
_POLL_SECONDS = 60
_next = [float("-inf")]  # the time at which this process tries to begin a look


def begin() -> None:
    """Enqueue a look, unless any process has done so in the last SECONDS."""
    if settings().mail_url is None or monotonic() < _next[0]:
        return
    _next[0] = monotonic() + _POLL_SECONDS
    if rate_windows.spend("mail:look", 1, limit=1, window=SECONDS):
        repository.enqueue_task("mail_look", {"after": 0})


def _look(argument: Row) -> bool:
    if settings().mail_url is None:
        return True
    if repository.waiting(MAX_WAITING) == MAX_WAITING:
        raise Later(_POLL_SECONDS)
    due = repository.due(argument["after"])
    for row in due:
        if row["message"] == "weekly_report":
            _report(row)
        elif row["message"]:
            notify(row["user_id"], row["message"], about=row["about"], **row["values"])
    [last] = [row["user_id"] for row in due if not row["message"]]
    if last is not None:
        repository.enqueue_task("mail_look", {"after": last})
    return True


def _report(row: Row) -> None:
    monday = _monday(datetime.now(UTC), row["timezone"])
    about = f"week until {monday}"
    if monday and row["about"] != about:
        notify(row["user_id"], "weekly_report", about=about, monday=monday.isoformat())


def _monday(now: datetime, zone: str) -> date | None:
    """Return the Monday for which a report is due in a time zone, or None."""
    local = now.astimezone(parse_zone(zone))
    is_due = _EARLIEST <= local.weekday() * 24 + local.hour < _LATEST
    return local.date() - timedelta(days=local.weekday()) if is_due else None


HANDLERS = {"mail_look": Handler(_look)}
