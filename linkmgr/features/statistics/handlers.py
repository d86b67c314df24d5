from collections.abc import Collection
from typing import Any

from flask import Blueprint, Response, request

from linkmgr.core.fields import shapes
from linkmgr.core.fields.countries import with_code
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.query import page_limit, parameters
from linkmgr.core.settings import settings
from linkmgr.core.web import auth, csv, pool
from linkmgr.core.web.operation import Operation, Section, operation, prose
from linkmgr.core.web.responses import Json, ok
from linkmgr.core.web.streams import BUSY
from linkmgr.features.statistics import latest_visits, names, periods, results, visit_list
from linkmgr.features.statistics import query as queries
from linkmgr.features.statistics.results import Report
from linkmgr.features.statistics.selection import Owner
from linkmgr.visits import dimensions, store
from linkmgr.visits.dimensions import CAMPAIGN, CHANNEL, DIMENSIONS, TARGET

bp = Blueprint("stats", __name__, url_prefix="/api")

_TIME = "2026-10-24T00:00:00+02:00"
_NAMES = shapes.map_of("DE,-US", "country")
_CODE = shapes.or_null("DE") | {"description": "The ISO 3166 code of the country, or null without one."}
_VISIT: dict[str, shapes.Shape] = {
    "time": shapes.TIMESTAMP,
    **{dimension.name: dimension.example for dimension in DIMENSIONS},
    "bot": False,
}


# A row and the totals have those that were asked for
_ROW = shapes.object_of(
    time="2026-10-24",
    **{dimension.name: dimension.example for dimension in DIMENSIONS},
    country_code=_CODE,
    event="sale",
    currency=shapes.or_null("EUR"),
    target=shapes.ID,
    campaign={"type": ["integer", "null"], "examples": [17]},
    channel={"type": ["integer", "null"], "examples": [17]},
    domain={"type": ["string", "null"], "examples": ["go.example.com"]},
    target_name={"type": ["string", "null"], "examples": ["Summer sale"]},
    shorturl=shapes.or_null("https://go.example.com/summer"),
    campaign_name={"type": ["string", "null"], "examples": ["Summer"]},
    channel_name={"type": ["string", "null"], "examples": ["Newsletter"]},
    clicks=12,
    visitors=shapes.or_null(9),
    conversions=3,
    value=shapes.or_null(shapes.AMOUNT),
    rate={"type": ["number", "null"], "minimum": 0, "examples": [0.25]},
)["properties"]
_RECORDS = {
    "StatsRow": {"type": "object", "properties": _ROW},
    "StatsMeta": shapes.object_of(
        metrics=shapes.array_of(shapes.choice(*queries.METRICS)),
        by=shapes.array_of(shapes.choice(*queries.BY)) | {"examples": [["time:day", "country"]]},
        ids={"type": ["array", "null"], "items": shapes.ID, "examples": [None]},
        campaign={"type": ["integer", "null"], "examples": [None]},
        channel={"type": ["integer", "null"], "examples": [None]},
        domain={"type": ["string", "null"], "examples": [None]},
        **{"from": _TIME, "to": "2026-10-31T00:00:00+01:00"},
        period=shapes.or_null(shapes.choice(*periods.PERIODS)),
        timezone="Europe/Berlin",
        filters=_NAMES,
        bots=shapes.choice(*queries.BOTS),
        order="time",
        limit=shapes.number(1000, 1),
        truncated=False,
        source=shapes.choice("rollups", "visits", "conversions"),
        detailed_since=shapes.or_null(shapes.TIMESTAMP),
        utc_days_before=shapes.DAY,
        visitors_null_because={"type": ["string", "null"], "examples": [None]},
        value_null_because={"type": ["string", "null"], "examples": [None]},
    ),
    "Visit": shapes.object_of(**_VISIT, country_code=_CODE),
}
SECTION = Section(
    "stats",
    "Statistics",
    prose(__file__, dimensions=dimensions, periods=periods, queries=queries, stats=results, visits=store),
    lambda: _RECORDS,
    tables={"Members of meta": "StatsMeta"},
)


def _owner() -> Owner:
    """Return the user whose visits are counted. Administrators can name another one, or all."""
    user, caller = queries.user(is_admin=bool(auth.caller().admin)), auth.user_id()
    return (
        Owner(caller, everyone=True)
        if user == queries.EVERYONE
        else Owner(caller if user is None else int(user))
    )


def _as_csv(report: Report) -> Response:
    return csv.respond(report.columns, report.rows)


def _respond(report: Report, *, named_by: Collection[str] = ()) -> Json | Response:
    if csv.is_preferred():
        return _as_csv(report)
    rows = names.with_names(report, named_by) if named_by else report.rows
    return ok(data={"rows": list(map(with_code, rows)), "totals": report.totals}, meta=report.meta)


def _table(row: JsonSchema, totals: JsonSchema) -> JsonSchema:
    table = shapes.object_of(
        rows=shapes.array_of(shapes.ref("StatsRow")),
        totals=shapes.ref("StatsRow") | {"description": "The figures of all rows."},
    )
    return shapes.named("StatsTable", table) | {"examples": [{"rows": [row], "totals": totals}]}


_QUERY = operation(
    "stats:read",
    "stats.query",
    shapes.success(
        "StatsReport",
        data=_table(
            {"time": "2026-10-24", "country": "Germany", "clicks": 12, "country_code": "DE"}, {"clicks": 12}
        ),
        meta=shapes.ref("StatsMeta"),
    ),
    query=queries.QUERY,
    example_query={"by": "time:day,country", "period": "7d", "timezone": "Europe/Berlin"},
    errors=(
        "administrators_only",
        "address_too_long",
        "domain_unknown",
        "missing",
        "stats_busy",
        "too_slow",
        *BUSY,
    ),
    restricted=("own_only", "domains"),
    selections=("ids", "campaign", "channel", "domain"),
)
_LIVE = operation(
    "stats:read",
    "stats.live",
    shapes.success(
        "LiveReport",
        data=_table({"time": "2026-11-21 09:30:00", "clicks": 3}, {"clicks": 3}),
        meta=shapes.object_of(bots=shapes.choice(*queries.BOTS)),
    ),
    query=queries.LIVE,
    errors=("administrators_only", "missing", "too_slow"),
    values={"minutes": latest_visits.MINUTES},
)


@bp.get("/stats")
@_QUERY
def read() -> Json | Response:
    """Read statistics over time.

    Use it for clicks and visitors of a period: by time, by country, referrer or another dimension,
    or by link. `by=target&names=1&period=last_month&limit=10` are the ten links with the most
    clicks last month. Not for single visits, or for what a link is: use `GET /api/url/{link_id}`.

    A parameter or a name that does not exist is a 400 that lists those that do.
    """
    query, key = queries.parse(), auth.caller().key
    # A restricted key cannot read campaigns and channels
    nameable = (TARGET,) if key and key.is_restricted else (TARGET, CAMPAIGN, CHANNEL)
    return _respond(results.report(_owner(), query), named_by=nameable if query.is_named else ())


@bp.get("/stats.csv")
@_QUERY.as_csv("time,country,clicks\r\n2026-10-24,Germany,12\r\n")
def read_csv() -> Response:
    """Read statistics over time as CSV."""
    return _as_csv(results.report(_owner(), queries.parse()))


@bp.get("/stats/live")
@_LIVE
def live() -> Json | Response:
    """Read the clicks of the last minutes.

    A row for each of the last {minutes} minutes, in UTC, the current one included.
    """
    return _respond(latest_visits.report(_owner(), parameters(queries.LIVE)["bots"]))


@bp.get("/stats/live.csv")
@_LIVE.as_csv("time,clicks\r\n2026-11-21 09:30:00,3\r\n")
def live_csv() -> Response:
    """Read the clicks of the last minutes as CSV."""
    return _as_csv(latest_visits.report(_owner(), parameters(queries.LIVE)["bots"]))


# --- the visits of links and QR codes

_VISITS = shapes.success(
    "VisitList",
    data=shapes.object_of(
        perpage=shapes.number(15, 1),
        visits=shapes.array_of(shapes.ref("Visit")),
        next="20261121T093000.123456-1",
    )
    | {"required": ["perpage", "visits"]},
)
_VISITS_CSV = csv.lines([_VISIT, shapes.example_of(shapes.object_of(**_VISIT), {}).values()]).decode()


def _visits_of(operation_id: str, scope: str) -> Operation:
    return operation(
        scope,
        operation_id,
        _VISITS,
        query=queries.VISITS,
        errors=("stats_busy",),
        restricted=("own_only", "domains"),
        apart=True,
    )


_OF_LINK, _OF_QR = _visits_of("links.listVisits", "links:read"), _visits_of("qr.listVisits", "qr:read")


@bp.get("/url/<id:link_id>/visits")
@_OF_LINK
def visits_of_link(link_id: int) -> Json | Response:
    """List the visits of a link.

    Newest first, as long as the plan keeps visits. `next` is absent on the last page.
    """
    return _list_visits(link_id, what="link")


@bp.get("/url/<id:link_id>/visits.csv")
@_OF_LINK.as_csv(_VISITS_CSV)
def csv_of_link(link_id: int) -> Json | Response:
    """List the visits of a link as CSV.

    The next page is in the header `Link`.
    """
    return _list_visits(link_id, what="link", as_csv=True)


@bp.get("/qr/<id:qr_id>/visits")
@_OF_QR
def visits_of_qr(qr_id: int) -> Json | Response:
    """List the visits of a QR code.

    Newest first, as long as the plan keeps visits. `next` is absent on the last page.
    """
    return _list_visits(qr_id, what="QR code")


@bp.get("/qr/<id:qr_id>/visits.csv")
@_OF_QR.as_csv(_VISITS_CSV)
def csv_of_qr(qr_id: int) -> Json | Response:
    """List the visits of a QR code as CSV.

    The next page is in the header `Link`.
    """
    return _list_visits(qr_id, what="QR code", as_csv=True)


def _list_visits(tracked_id: int, *, what: str, as_csv: bool = False) -> Json | Response:
    sent, limit = parameters(queries.VISITS), page_limit()
    bots = queries.BOTS[sent["bots"]]
    if sent["after"]:
        pool.take_for(sent["after"][1], "stats_busy")  # visits of one moment, which are read and left out
    page = visit_list.index(
        auth.user_id(), tracked_id, what=what, limit=limit, after=sent["after"], bots=bots
    )
    if as_csv or csv.is_preferred():
        return csv.respond(visit_list.COLUMNS, page.rows, **_next_link(page.next))
    data: dict[str, Any] = {"perpage": limit, "visits": list(map(with_code, page.rows))}
    return ok(data=data | ({"next": page.next} if page.next else {}))


def _next_link(position: str | None) -> dict[str, str]:
    """Return the header that names the next page (RFC 8288), because CSV has no place for it."""
    if position is None:
        return {}
    query = "&".join(f"{name}={request.args[name]}" for name in ("limit", "bots") if name in request.args)
    return {
        "Link": f'<{settings().base_url}{request.path}?after={position}{query and f"&{query}"}>; rel="next"'
    }
