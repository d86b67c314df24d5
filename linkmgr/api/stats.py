"""/api/stats, and the visits of links and QR codes"""

from typing import Any

from flask import Blueprint, Response, request

from linkmgr.fields import stats as queries
from linkmgr.fields.query import page_limit, parameters
from linkmgr.repository import visit_list
from linkmgr.repository.stats_scope import Owner
from linkmgr.settings import settings
from linkmgr.visits import stats
from linkmgr.visits.stats import Report
from linkmgr.web import auth, csv
from linkmgr.web.responses import Json, ok

bp = Blueprint("stats", __name__)


def _owner() -> Owner:
    """Return the user whose visits are counted. Administrators can name another one, or all."""
    user, caller = queries.user(is_admin=bool(auth.caller().admin)), auth.user_id()
    return Owner(caller, everyone=True) if user == queries.EVERYONE else Owner(caller if user is None else int(user))


def _answer(report: Report) -> Json | Response:
    if csv.is_preferred():
        return csv.respond(report.columns, report.rows)
    return ok(data={"rows": report.rows, "totals": report.totals}, meta=report.meta)


@bp.get("/stats")
def read() -> Json | Response:
    return _answer(stats.report(_owner(), queries.parse()))


@bp.get("/stats/live")
def live() -> Json | Response:
    return _answer(stats.live(_owner(), parameters(queries.LIVE)["bots"]))


def list_visits(tracked_id: int, *, what: str) -> Json | Response:
    """Answer /api/url/:id/visits and /api/qr/:id/visits."""
    sent, limit = parameters(queries.VISITS), page_limit()
    bots = queries.BOTS[sent["bots"]]
    page = visit_list.index(auth.user_id(), tracked_id, what=what, limit=limit, after=sent["after"], bots=bots)
    if csv.is_preferred():
        return csv.respond(visit_list.COLUMNS, page.rows, **_next_link(page.next))
    data: dict[str, Any] = {"perpage": limit, "visits": page.rows}
    return ok(data=data | ({"next": page.next} if page.next else {}))


def _next_link(position: str | None) -> dict[str, str]:
    """Return the header that names the next page (RFC 8288), because CSV has no place for it."""
    if position is None:
        return {}
    query = "&".join(f"{name}={request.args[name]}" for name in ("limit", "bots") if name in request.args)
    return {"Link": f'<{settings().base_url}{request.path}?after={position}{query and f"&{query}"}>; rel="next"'}
