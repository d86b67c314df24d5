"""The session that the pages for signed-in users require, the account that it works in, and times
in the time zone of the user."""

from contextlib import suppress
from datetime import UTC, datetime

from flask import current_app, g, redirect, request, session, url_for
from werkzeug.wrappers import Response

from linkmgr.console import queries, roles
from linkmgr.core.database.statements import act_as
from linkmgr.core.errors import AppError
from linkmgr.core.feature import has_feature
from linkmgr.core.fields.zones import parse_zone
from linkmgr.core.settings import settings
from linkmgr.core.web import limiter, session_store, sessions
from linkmgr.core.web import request as web_request

SIGN_OUT = "account_page.sign_out"  # what a suspended user can do
OF_PERSON = "/account"
# Administrators without a required factor can do this, and those who forgot the password the rest.
ENROLLING = ("factors.", "confirmation.", "identity.confirm", SIGN_OUT)
FORGOTTEN = ("account_page.show", "account_page.password")
_MAX_PATH = 1000  # characters of a path that a cookie keeps
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def require_session() -> Response | None:
    current = sessions.current()
    if current is None:
        _remember_page()
        return redirect(url_for("login.form"), code=303)
    limiter.refuse_above(limiter.parse_rate(settings().page_rate_limit), current)
    if current["suspended"] and request.endpoint != SIGN_OUT:
        g.is_suspended = True
        raise AppError("account_suspended")
    # The account that the person works in, with the limits of the plan and what is used of them
    g.account, g.person_id, g.role = current, current["person_id"], current["role"]
    # Pages below /account are about the person.
    is_of_person = request.path.startswith(OF_PERSON)
    g.user_id = g.person_id if is_of_person else current["user_id"]
    g.admin, g.zone = current["is_administrator"], parse_zone(current["timezone"])
    # A domain that does not point here is no default.
    g.domain = "" if current["domain_problem"] else current["domain"] or ""
    g.session, g.factors = sessions.digest(), {*current["factors"]} if has_feature("signin") else set()
    g.has_identity = current["has_identity"] and "sign_in_oidc" in current_app.blueprints
    is_known = g.factors or g.has_identity or sessions.REMOTE_USER in session
    g.has_password = settings().passwords and current["has_password"]
    # and must set one first
    g.lacks_password = settings().passwords and not (current["has_password"] or is_known)
    g.by_link = settings().passwords and (current["by_link"] or g.lacks_password)
    has_link_only = current["by_link"] and not (is_known or settings().passwords)
    g.is_confirmed = current["confirmed"] or g.get("by_proxy", False) or has_link_only
    g.confirms_apart = bool(g.factors) or not (g.has_password or g.lacks_password)
    g.can_change = roles.can(g.role, request.path, change=True)
    needs_factor = settings().admin_factor and current["needs_factor"] and has_feature("signin")
    if needs_factor and not (g.factors or g.lacks_password):
        g.must_enroll = True
        possible = ENROLLING + (FORGOTTEN if g.by_link else ())
        if not (request.endpoint or "").startswith(possible):
            return redirect(url_for("factors.show"), code=303)
    if current["is_lost"]:
        session_store.work_in(g.session, g.person_id)
        if not is_of_person:
            raise AppError("account_lost")
    is_change = request.method == "POST"
    if is_change and not is_of_person and request.args.get("account", str(g.user_id)) != str(g.user_id):
        raise AppError("account_switched")  # by another tab
    if request.url_rule:
        roles.require(g.role, request.path, change=is_change)
    if is_change:
        web_request.current().at_end.enter_context(act_as(g.person_id, None))
    return None


def _remember_page() -> None:
    """Let the sign-in return to a page of the console, but not to one that a page shows in a
    frame."""
    is_page = request.method == "GET" and request.headers.get("Sec-Fetch-Dest", "document") == "document"
    if (
        is_page
        and request.endpoint
        and request.path.startswith("/console/")
        and len(request.full_path) < _MAX_PATH
    ):
        sessions.remember_page(request.full_path.removesuffix("?"))


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
