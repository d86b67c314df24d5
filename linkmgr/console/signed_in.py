"""The session that the pages for signed-in users require, and times in the time zone of the
user."""

from contextlib import suppress
from datetime import UTC, datetime

from flask import g, redirect, request, url_for
from werkzeug.wrappers import Response

from linkmgr.console import queries
from linkmgr.core.database.statements import act_as
from linkmgr.core.errors import AppError
from linkmgr.core.fields.zones import parse_zone
from linkmgr.core.settings import settings
from linkmgr.core.web import limiter, sessions
from linkmgr.core.web import request as web_request

SIGN_OUT = "account_page.sign_out"  # what a suspended user can do
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def require_session() -> Response | None:
    current = sessions.current()
    if current is None:
        return redirect(url_for("login.form"), code=303)
    limiter.refuse_above(limiter.parse_rate(settings().page_rate_limit), current)
    if current["suspended"] and request.endpoint != SIGN_OUT:
        g.is_suspended = True
        raise AppError("account_suspended")
    g.account = current  # with the limits of the plan and what is used of them
    g.user_id, g.admin, g.zone = current["user_id"], current["admin"], parse_zone(current["timezone"])
    # A domain that does not point here is no default.
    g.domain = "" if current["domain_problem"] else current["domain"] or ""
    g.lacks_password, g.session = current["lacks_password"], sessions.digest()
    g.by_link = current["by_link"] or g.lacks_password
    if request.method == "POST":
        web_request.current().at_end.enter_context(act_as(g.user_id, None))
    return None


def require_password() -> Response | None:
    return redirect(url_for("account_page.show"), code=303) if g.lacks_password else None


def parse_utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _local(text: str) -> datetime:
    at = parse_utc(text)
    try:
        return at.astimezone(g.zone)
    except OverflowError:
        return at


def when(text: str, *, in_row: bool = False) -> str:
    """Return a time of the last day relative to now, and any other one exactly, or its day alone in
    a row of a list, whose `title` has the rest."""
    seconds = int((datetime.now(UTC) - parse_utc(text)).total_seconds())
    if not 0 <= seconds < _DAY:
        return day(text) if in_row else exact(text)
    if seconds < _MINUTE:
        return "just now"
    number, unit = (seconds // _MINUTE, "minute") if seconds < _HOUR else (seconds // _HOUR, "hour")
    return f"{number} {unit}{'' if number == 1 else 's'} ago"


def day(text: str) -> str:
    at = _local(text)
    return f"{at:%b} {at.day}, {at.year}"


def minute(text: str) -> str:
    """Return a time for a table that names the time zone in its heading."""
    return f"{day(text)}, {_local(text):%H:%M}"


def in_zone(text: str) -> str:
    """Return a time for a column that `zoned` names."""
    return _local(text).replace(tzinfo=None).isoformat(" ", "seconds")


def zoned(name: str) -> str:
    return f"{name} ({g.zone.key})"


def exact(text: str) -> str:
    return f"{minute(text)} {_local(text):%Z}"


def to_control(text: str) -> str:
    with suppress(ValueError):
        at = _local(text).replace(tzinfo=None)
        return at.isoformat("T", "seconds" if at.second else "minutes")
    return text


def from_control(text: str) -> str:
    """Return the UTC time of a control, with all digits of its year, which `strftime` leaves
    out."""
    with suppress(ValueError):
        at = datetime.fromisoformat(text).replace(tzinfo=g.zone)
        with suppress(OverflowError):
            at = at.astimezone(UTC)
        return at.replace(tzinfo=None).isoformat(" ", "seconds")
    return text


def displayed_time(text: str) -> str:
    """Return the UTC time of a control that shows this one: the first of both, if the clock is set
    back."""
    return from_control(to_control(text))


def counted(number: int) -> str:
    return f"{queries.MANY:,}+" if number > queries.MANY else f"{number:,}"
