"""/api/stats, and the visits of links and QR codes"""

from typing import Any

from flask import Blueprint, Response, request

from linkmgr.fields import stats as queries
from linkmgr.fields.periods import MAX_HOURLY_DAYS
from linkmgr.fields.query import page_limit, parameters
from linkmgr.fields.stats import MAX_ROWS
from linkmgr.repository import visit_list
from linkmgr.repository.stats_scope import Owner
from linkmgr.repository.visits import DETAILED_DAYS, MAX_LABELS, OTHER
from linkmgr.settings import settings
from linkmgr.visits import stats
from linkmgr.visits.stats import ACCOUNT, MAX_SUM_DAYS, MAX_VISIT_DAYS, Report
from linkmgr.web import auth, csv
from linkmgr.web.responses import Json, ok

bp = Blueprint("stats", __name__)

ABOUT = f"""\
Clicks and visitors over time, by country, city, referrer, browser, operating system, device and language, and by link
or QR code (`target`).

- **Times.** A range contains its start and not its end. Dates are days in `timezone`, and so are the days, weeks and
  months of `by`. Weeks begin on Monday. `time` is the date of a day, the first day of a week or month, or the start of
  an hour with its UTC offset, so that the hour that is repeated when summer time ends has two rows. Times must be full
  quarters of an hour. `time:hour` allows {MAX_HOURLY_DAYS} days.
- **Periods.** `7d`, `30d` and `90d` are today and the 6, 29 or 89 days before it. `12mo` is this month and the 11
  before it, `mtd` this month, `ytd` this year, `24h` this hour and the 23 before it. `all` begins with the first visit.
- **Rows.** Every time in the range has a row, with 0 where nothing was counted; with a dimension, one for each of its
  labels. `limit` keeps the labels with the most clicks, and the response has at most {MAX_ROWS:,} rows, so that a long
  range has fewer labels: see `limit` and `truncated` in `meta`. `totals` counts everything, also what is not shown.
- **Selection.** `ids`, `campaign`, `channel` and `domain` restrict each other. Without them, everything in the account
  is counted, deleted links too.
- **Filters.** A filter is a list of labels, separated by commas. A label with `-` is excluded. Case does not matter.
  `country` and `language` also take ISO codes. A country, language or device that does not exist is an
  error, but a country may have any name if `LINKMGR_GEOIP_DATABASE` is set. A label that contains a comma is in double
  quotes: `"-Direct, email and other"`.
- **Visitors.** A visitor of two links is two visitors. They are counted from the visits, which the plan keeps for a
  number of days. If the range begins before `detailed_since` (null: all visits are kept), `visitors` is null, and
  `visitors_null_because` says why.
- **Source.** Numbers by time and one dimension are stored as sums for each quarter of an hour, and are available at any
  age; `source` is then `rollups`. Two dimensions, a filter on another dimension than the one in `by`, and visitors are
  counted from the visits (`source` is `visits`), from `detailed_since` on. Sums older than {DETAILED_DAYS} days, before
  `utc_days_before`, are sums of UTC days: each counts as the day of the same date in `timezone`. Sums count the labels
  beyond the {MAX_LABELS:,} of a link or QR code as `{OTHER}`; visits have all labels. Only sums count
  deleted links and QR codes.
- **Long queries.** The days of the range, times the number of links and QR codes (the whole account counts as
  {ACCOUNT}), say how long a query takes. Above {MAX_VISIT_DAYS:,} if visits are counted, or {MAX_SUM_DAYS:,} if sums
  by a label are, a process of the service computes one query of a user and two of all users at a time. Others get the
  error `stats_busy` (503) with `Retry-After`.
- **CSV.** With the header `Accept: text/csv` the rows are returned as CSV (RFC 4180), with the names of the columns in
  the first line. Cells that a spreadsheet would read as a formula begin with `'`.

More examples: `/api/stats?by=country&period=12mo&limit=10` (the countries with the most clicks),
`/api/stats?ids=17,18&by=time:week,target&period=90d` (two links compared week by week),
`/api/stats?by=referrer&country=DE,AT,CH&metrics=clicks,visitors` (where German-speaking visitors come from), and
`/api/stats?by=time:hour&from=2026-11-21&to=2026-11-22&timezone=America/New_York` (one day in New York)."""


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
    return _answer(stats.report(auth.user_id(), _owner(), queries.parse()))


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
