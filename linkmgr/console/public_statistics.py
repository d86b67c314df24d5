"""Statistics that owners show: the form of a link or a campaign, and the page for all who have its
address."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from flask import Blueprint, Response, flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import periods
from linkmgr.console.forms import BOTH
from linkmgr.console.frame import blueprint
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError, refusal, required
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.short_urls import short_url
from linkmgr.core.fields.zones import parse_zone
from linkmgr.core.settings import settings
from linkmgr.core.web import attempts, limiter, pool, security_headers
from linkmgr.core.web import request as web_request
from linkmgr.features.public_statistics import repository as public_statistics
from linkmgr.features.public_statistics.schema import BOUNDED_PERIODS, PublicPage, change, with_url
from linkmgr.visits.dimensions import TITLES

bp = blueprint("public_pages_form", "/console")
of_visitors = Blueprint("public_statistics", __name__)
of_visitors.after_request(security_headers.keep_private)
_TOP = 8  # labels of a table
_MAX_CACHED = 128  # figures of pages, in a process
_NAMES = periods.PERIODS | {"30d": ("30d", "the last 30 days"), "ytd": ("This year", "the current year")}


@bp.route("/links/<id:row_id>/public", defaults={"noun": "link"}, methods=BOTH)
@bp.route("/campaigns/<id:row_id>/public", defaults={"noun": "campaign"}, methods=BOTH)
def share(noun: str, row_id: int) -> ResponseReturnValue:
    subject: Row = {f"{noun}_id": row_id}
    problem = refusal(lambda: _store(subject), "invalid") if request.method == "POST" else None
    if request.method == "POST" and not problem:
        return redirect(url_for(".share", noun=noun, row_id=row_id), code=303)
    page = render_template(
        "console/public_statistics.html",
        noun=noun,
        back=url_for(f"console.{noun}", row_id=row_id),
        row=with_url(public_statistics.read(g.user_id, **subject)),
        problem=problem and problem.message,
        periods={name: _NAMES[name][1] for name in BOUNDED_PERIODS},
        tables=TITLES,
    )
    return page, 400 if problem else 200


def _store(subject: Row) -> None:
    if "hide" in request.form:
        public_statistics.delete(g.user_id, **subject)
        flash("The statistics are no longer public.", "success")
        return
    sent: Row = {"period": request.form.get("period", ""), "tables": request.form.getlist("tables")}
    if "password.remove" in request.form:
        sent["password"] = ""
    elif password := request.form.get("password"):
        sent["password"] = password
    change(g.user_id, subject, load(PublicPage.updates(), sent))
    flash("Saved. Everybody who has the address sees these statistics.", "success")


# --- the page for visitors


@of_visitors.after_request
def _refuse_index(response: Response) -> Response:
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response


@of_visitors.route("/statistics/<word:token>", methods=BOTH)
def show(token: str) -> ResponseReturnValue:
    limiter.enforce(f"pages:{web_request.network()}", settings().page_rate_limit, "pages_limited")
    page = required(public_statistics.find(token), "no_such_page")
    if page["password_hash"] and (refused := _refuse_password(page)):
        return refused
    now = datetime.now(UTC)
    figures = _figures(
        (now.timestamp() // 60, token),
        page["user_id"],
        "campaign" if page["campaign_id"] else "link",
        page["campaign_id"] or page["link_id"],
        zone=page["timezone"],
        period=page["period"],
        tables=tuple(page["tables"]),
        is_large=page["is_large"],
    )
    url = page["alias"] and short_url(page["domain"], page["alias"])
    return render_template(
        "public_statistics.html",
        title=page["name"] or page["metatitle"],
        url=url,
        zone=page["timezone"],
        **figures,
    )


def _refuse_password(page: Row) -> ResponseReturnValue | None:
    error = None
    if request.method == "POST":
        limit = attempts.by_client(f"statistics {page['link_id']} {page['campaign_id']}")
        if attempts.matches(request.form.get("password", ""), page["password_hash"], limit):
            return None
        error = AppError("link_password_wrong")
    form = render_template("link_password.html", what="This page is", error=error and error.message)
    return form, error.status if error else 200


@lru_cache(_MAX_CACHED)
def _figures(
    _key: Any,
    user_id: int,
    subject: str,
    row_id: int,
    *,
    zone: str,
    period: str,
    tables: tuple[str, ...],
    is_large: bool,
) -> Row:
    """Return the figures of a page, as the console shows them. The key has the minute."""
    if is_large:
        pool.count_for("public statistics")
        pool.take("stats_busy")
    g.user_id, g.zone, g.account = user_id, parse_zone(zone), {"uncounted_since": None}
    chosen = periods.named(period, datetime.now(UTC))
    rows, chart, _ = periods.count(chosen, subject=subject, row_id=row_id, dimensions=tables, limit=_TOP)
    return {
        "chart": chart | {"csv": ""},
        "period": chosen.name,
        "tables": [
            {
                "heading": TITLES[name],
                "rows": [
                    row | {"label": periods.label(name, row["label"]), "url": ""}
                    for row in rows
                    if row["dimension"] == name
                ],
            }
            for name in tables
        ],
    }
