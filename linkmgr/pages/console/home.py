"""The first page: shorten URLs, and the clicks of the last 30 days."""

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import psycopg2
from flask import g, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.api import urls as api
from linkmgr.db.statements import Row
from linkmgr.fields.base import load, problems
from linkmgr.fields.periods import as_array, parse_range, split_days, start_of_day, utc_day_of
from linkmgr.fields.periods import buckets as buckets_of
from linkmgr.pages import account as account_page
from linkmgr.pages import charts
from linkmgr.pages.console.frame import bp
from linkmgr.repository import account as accounts
from linkmgr.repository import overviews, top_targets
from linkmgr.settings import settings
from linkmgr.web import errors
from linkmgr.web.errors import AppError

DAYS = 30
MAX_LINES = 50  # of one form
_TABLES = {"target": "Top links", "country": "Countries", "referrer": "Referrers"}
_TOP = 6
_MAX_COMPARED = 50_000  # clicks, or targets times days, among which the top links are searched
_NEAR = 0.8  # of a limit
_BARE = re.compile(r"[\w-]+(?:\.[\w-]+)+(?:[:/?#]\S*)?")  # a URL without its scheme


class Shortened(NamedTuple):
    """The result of the form: the links, new or not, and the lines that were refused with their messages."""

    links: list[Row]
    refused: list[tuple[str, str]]


def _shorten(line: str) -> Row:
    url = f"https://{line}" if _BARE.fullmatch(line) else line
    if messages := problems(api.NewLink, {"url": url}):
        raise AppError("invalid", problems=f"The URL {messages['url']}")
    try:
        return api.create(g.user_id, load(api.NewLink, {"url": url})) | {"url": url}
    except psycopg2.IntegrityError as error:
        app_error = errors.from_constraint(error)
        if app_error is None:
            raise
        raise app_error from None


def _shorten_all(text: str) -> Shortened:
    result = Shortened([], [])
    lines = list(dict.fromkeys(line.strip() for line in text.replace("\0", "").splitlines() if line.strip()))
    for line in lines[:MAX_LINES]:
        try:
            result.links.append(_shorten(line))
        except AppError as error:
            result.refused.append((line, error.message))
    result.refused.extend((line, f"Send at most {MAX_LINES} lines at a time.") for line in lines[MAX_LINES:])
    return result


def _numbers(targets: int) -> Row:
    """Return the chart and the tables of the account, which has this number of links and QR codes."""
    span = parse_range(g.zone, datetime.now(UTC), since=None, until=None, period=f"{DAYS}d")
    assert span.since
    first = start_of_day(span.since.astimezone(g.zone).date() - timedelta(days=DAYS), g.zone)
    edges = [bucket.start for bucket in buckets_of(replace(span, since=first), "day")]
    since, since_day = span.since.isoformat(), utc_day_of(span.since, g.zone, date.min).isoformat()
    rows = overviews.of_account(
        g.user_id,
        edges=as_array(edges),
        split=as_array(split_days(edges, first, span.until, date.min)),
        previous=first.date().isoformat(),
        since=since,
        since_day=since_day,
        limit=_TOP,
    )
    counts = {int(row["label"]): row["clicks"] for row in rows if not row["dimension"]}
    buckets = [
        charts.Bucket(edge.astimezone(g.zone), counts.get(number, 0), counts.get(number - DAYS, 0))
        for number, edge in list(enumerate(edges, 1))[-DAYS:]
    ]
    total = sum(bucket.clicks for bucket in buckets)
    is_large = min(total, targets * DAYS) > _MAX_COMPARED
    busiest = max(buckets, key=lambda bucket: bucket.clicks).start.isoformat() if is_large else None
    rows += top_targets.read(g.user_id, since=since, since_day=since_day, busiest=busiest, limit=_TOP)
    return {
        "chart": charts.chart(buckets, unit="day", period=f"the last {DAYS} days"),
        "total": total,
        "tables": charts.tables(rows, total, _TABLES, _name),
        "is_large": is_large,
    }


def _name(row: Row) -> tuple[str, str]:
    if row["dimension"] != "target":
        return row["label"] or "Unknown", ""
    url = url_for("console.link", row_id=row["link_id"]) if row["link_id"] else ""
    return row["name"] or "A deleted link or QR code", url


def _page(shortened: Shortened | None = None) -> str:
    account = accounts.overview(g.user_id)
    usage = [] if account["admin"] else account_page.usage(account)
    return render_template(
        "console/home.html",
        near=[item for item in usage if item.limit and item.used >= _NEAR * item.limit],
        links_used=account["used"].get("links", 0),
        shortened=shortened,
        base_url=settings().base_url,
        max_lines=MAX_LINES,
        **_numbers(account["used"].get("links", 0) + account["used"].get("qrs", 0)),
    )


@bp.get("")
def home() -> str:
    return _page()


@bp.post("")
def home_shorten() -> ResponseReturnValue:
    shortened = _shorten_all(request.form.get("urls", ""))
    return _page(shortened), 400 if shortened.refused and not shortened.links else 200
