from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter

from flask import g, render_template, request
from flask.typing import ResponseReturnValue

from linkmgr.console import overview, periods, plan_use
from linkmgr.console.controls import with_scheme
from linkmgr.console.frame import bp
from linkmgr.core import errors
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields.bodies import load, problems
from linkmgr.repository import account as accounts
from linkmgr.schemas.links import Link, create_link

DAYS = 28  # four weeks, so that weekdays lie above weekdays
MAX_LINES = 50  # of one form
_TABLES = {"target": "Top links and QR codes", "country": "Countries", "referrer": "Referrers"}
_TOP = 6
_MAX_COMPARED = (
    50_000  # clicks with those before, or links times days, among which the top links are searched
)
_NEAR = 0.8  # of a limit


def _shorten(domain: str, links: list[Row], line: str) -> None:
    body = {"url": with_scheme(line), "domain": domain}
    for name, problem in problems(Link.creates(), body).items():
        raise AppError("invalid", problems=f"The {'URL' if name == 'url' else name} {problem}")
    links.append(create_link(g.user_id, load(Link.creates(), body)) | body)


def _shorten_all(text: str, domain: str) -> tuple[list[Row], list[tuple[str, str]]]:
    links: list[Row] = []
    refused = []
    lines = list(dict.fromkeys(line.strip() for line in text.replace("\0", "").splitlines() if line.strip()))
    for line in lines[:MAX_LINES]:
        if error := errors.refusal(partial(_shorten, domain, links, line)):
            refused.append((line, error.message))
    refused += [(line, f"Send at most {MAX_LINES} lines at a time.") for line in lines[MAX_LINES:]]
    return links, refused


def _numbers(tracked: int) -> Row:
    period = periods.named(f"{DAYS}d", datetime.now(UTC))
    rows, chart, labels = periods.count(period, dimensions=["country", "referrer", "kind"], limit=_TOP)
    counted = sum(mark["clicks"] + mark["previous"] for mark in chart["marks"])
    is_large = min(counted, tracked * 2 * DAYS) > _MAX_COMPARED
    busiest = max(chart["marks"], key=itemgetter("clicks"))["start"].isoformat() if is_large else None
    top = overview.top_tracked(g.user_id, busiest=busiest, limit=_TOP, times=labels)
    rows += [row if chart["second"] else row | {"before": None} for row in top]
    return {"chart": chart, "tables": periods.tables(rows, _TABLES, _labeled, {}), "is_large": is_large}


def _labeled(row: Row) -> Row:
    if row["dimension"] != "target":
        return periods.labeled({}, row)
    return periods.named_row(row["label"], row["named"])


def _page(domain: str, links: Sequence[Row] = (), refused: Sequence[tuple[str, str]] = ()) -> str:
    account = accounts.overview(g.user_id)
    usage = [] if account["admin"] else plan_use.usage(account)
    return render_template(
        "console/home.html",
        near={
            "Limit of your plan reached": [use for use in usage if use.limit and use.used >= use.limit],
            "Near the limit of your plan": [
                use for use in usage if use.limit and _NEAR * use.limit <= use.used < use.limit
            ],
        },
        links_used=account["used"].get("links", 0),
        links=links,
        domain=domain,
        domains=account["domains"],
        refused=refused,
        **_numbers(account["used"].get("links", 0) + account["used"].get("qrs", 0)),
    )


@bp.get("")
def home() -> str:
    return _page(g.domain)


@bp.post("")
def home_shorten() -> ResponseReturnValue:
    domain = request.form.get("domain", g.domain)
    links, refused = _shorten_all(request.form.get("urls", ""), domain)
    return _page(domain, links, refused), 400 if refused and not links else 200
