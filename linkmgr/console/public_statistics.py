"""Statistics that owners show: the form of a link or a campaign, and the page for all who have its
address."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from flask import Blueprint, Response, flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import overview, periods
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
from linkmgr.features.public_statistics.schema import PublicPage, change
from linkmgr.features.statistics.periods import PERIODS
from linkmgr.visits.dimensions import TITLES

bp = blueprint("public_pages_form", "/console")
of_visitors = Blueprint("public_statistics", __name__)
of_visitors.after_request(security_headers.keep_private)
_TOP = 8  # labels of a table
_MAX_CACHED = 128  # pages of a process


@bp.route("/links/<id:row_id>/public", defaults={"noun": "link"}, methods=BOTH)
@bp.route("/campaigns/<id:row_id>/public", defaults={"noun": "campaign"}, methods=BOTH)
def share(noun: str, row_id: int) -> ResponseReturnValue:
    subject, now, problem = {f"{noun}_id": row_id}, datetime.now(UTC), None
    if request.method == "POST" and not (problem := refusal(lambda: _store(**subject), "invalid")):
        return redirect(url_for(".share", noun=noun, row_id=row_id), code=303)
    page = render_template(
        "console/public_statistics.html",
        noun=noun,
        back=url_for(f"console.{noun}", row_id=row_id),
        row=public_statistics.read(g.user_id, **subject),
        problem=problem and problem.message,
        periods={name: periods.named(name, now).name for name in PERIODS},
        tables=TITLES,
    )
    return page, 400 if problem else 200


def _store(**subject: int) -> None:
    form = request.form
    sent: Row = {"public": "hide" not in form}
    if sent["public"]:
        password = "" if "password.remove" in form else form.get("password") or None
        sent |= {"period": form.get("period", ""), "tables": form.getlist("tables"), "password": password}
    sent = {name: value for name, value in sent.items() if value is not None}
    page = change(g.user_id, load(PublicPage.updates(), sent), **subject)
    flash(
        "Saved. Others see these statistics." if page["url"] else "Others no longer see these statistics.",
        "success",
    )


# --- the page for visitors


@of_visitors.after_request
def _refuse_index(response: Response) -> Response:
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response


@of_visitors.route("/statistics/<word:token>", methods=BOTH)
def show(token: str) -> ResponseReturnValue:
    limiter.enforce(f"pages:{web_request.network()}", settings().page_rate_limit, "pages_limited")
    page = required(public_statistics.find(token), "no_such_page")
    if page["password_hash"] and (form := _password_form(page)):
        return form
    page["tables"] = tuple(page["tables"])
    figures = _figures(datetime.now(UTC).timestamp() // 60, tuple(page.items()))
    url = page["alias"] and short_url(page["domain"], page["alias"])
    return render_template("public_statistics.html", page=page, url=url, **figures)


def _password_form(page: Row) -> ResponseReturnValue | None:
    error = None
    if request.method == "POST":
        limit = attempts.by_client(f"statistics {page['link_id']} {page['campaign_id']}")
        if attempts.matches(request.form.get("password", ""), page["password_hash"], limit):
            return None
        error = AppError("link_password_wrong")
    form = render_template("link_password.html", what="This page is", error=error and error.message)
    return form, error.status if error else 200


@lru_cache(_MAX_CACHED)
def _figures(_minute: float, stored: tuple[tuple[str, Any], ...]) -> Row:
    """Return the chart and the tables of a page, of which all is compared, as the console has
    them."""
    page = dict(stored)
    if page["large"]:
        pool.count_for("public statistics")
        pool.take("stats_busy")
    g.user_id, g.zone, g.account = page["user_id"], parse_zone(page["timezone"]), {"uncounted_since": None}
    subject = "campaign" if page["campaign_id"] else "link"
    row_id, headings = page[f"{subject}_id"], {name: TITLES[name] for name in page["tables"]}
    first = overview.first_visit(g.user_id, subject, row_id) if page["period"] == "all" else None
    period = periods.named(page["period"], datetime.now(UTC), first)
    rows, chart, _ = periods.count(period, subject=subject, row_id=row_id, dimensions=headings, limit=_TOP)
    tables = periods.tables(rows, headings, _labeled, {})
    return {
        "chart": chart | {"csv": ""},
        "period": period.name,
        "tables": [table | {"more": ""} for table in tables],
    }


def _labeled(row: Row) -> Row:
    return {"label": periods.label(row["dimension"], row["label"]), "url": ""}
