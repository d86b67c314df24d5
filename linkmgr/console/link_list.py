"""The list of links and its filters. Everything is in the query."""

import re
from datetime import date, timedelta
from typing import Any

from flask import Response, after_this_request, g, render_template, request, url_for

from linkmgr.console import charts, periods, queries
from linkmgr.console.forms import PER_PAGE, Form
from linkmgr.console.frame import Chip, bp
from linkmgr.core.database.statements import Row
from linkmgr.core.feature import has_feature
from linkmgr.core.fields.query import SEARCH, page_number, query_choice, query_id, query_text, values_of
from linkmgr.core.fields.zones import start_of_day
from linkmgr.core.settings import settings
from linkmgr.core.web import pool
from linkmgr.repository import link_lists
from linkmgr.schemas.links import HEALTH

SIZES = ("25", "50", "100")  # rows of a page
MAX_TAGS = 3  # channels of a row
_ROWS = "linkmgr_rows"  # a cookie
_KEPT: Row = {"max_age": 365 * 24 * 60 * 60, "httponly": True, "samesite": "Lax"}
ORDERS = {"date": "Last added first", "created": "Last created first", "oldest": "First created first",
          "click": "Most clicks "
          "first", "fewest": "Fewest clicks first", "recent": "Most clicks in 28 days",
          "visitor": "Most visitors first", "visit": "Last visited first"}  # fmt: skip
ROWS = ("domain", "campaign", "channel")  # filters whose values are ids of rows
_FIXED = {  # filters with fixed values
    "status": ("Status", {"public": "Public", "private": "Private"}),
    "expired": ("Expiry", {"yes": "Expired or used up", "no": "Not expired"}),
    "password": ("Password", {"yes": "With a password", "no": "Without a password"}),
    "health": ("Target", HEALTH),
    "clicked": ("Clicks", {"no": "No clicks", "yes": "With clicks"}),
}
# Labels, and days to the end of what is meant
_DAYS = {"since": ("Created since", 0), "until": ("Created until", 1)}
_FIRST, _LAST = date(2000, 1, 1), date(2100, 1, 1)
# Words of the search that are filters, besides domain:, campaign: and channel: with a name.
_WORDS = {"is:public": ("status", "public"), "is:private": ("status", "private"), "is:expired": ("expired", "yes"),
          "is:broken": ("health", "broken"), "has:password": ("password", "yes"), "has:clicks": ("clicked", "yes"),
          "no:clicks": ("clicked", "no")}  # fmt: skip
_WORD = re.compile(r'(?<!\S)(domain|campaign|channel|externalid|is|has|no):(?:"([^"]*)"|(\S+))')
# Filters without a control
_OTHERS = {"import": "Import", "source": "Imported from", "externalid": "External id"}
_FILTERS = ("q", *ROWS, *_FIXED, *_DAYS, *_OTHERS)
NAMES = (*_FILTERS, "order", "per")


Filters = dict[str, tuple[str, dict[str, str]]]  # by name: the label, and the labels of the values


def all_filters(rows: dict[str, dict[str, str]]) -> Filters:
    rows["domain"] = {"0": settings().base_url} | rows["domain"]
    return {
        name: (name.capitalize(), {row_id: text.rpartition("://")[2] for row_id, text in rows[name].items()})
        for name in ROWS
    } | _FIXED


def conditions(query: dict[str, Any]) -> Row:
    times = {
        name: start_of_day(date.fromisoformat(query[name]) + timedelta(days=days), g.zone).isoformat()
        for name, (_, days) in _DAYS.items()
        if query.get(name)
    }
    return {name: query.get(name) for name in link_lists.FILTERS} | times


def _day(name: str) -> str | None:
    day = periods.parse_date(name)
    return min(max(day, _FIRST), _LAST).isoformat() if day else None


def take_slot() -> None:
    pool.take_for(g.account["used"].get("links", 0), "search_busy")


def requested(filters: Filters) -> dict[str, Any]:
    query: dict[str, Any] = (
        values_of({"q": SEARCH})
        | {name: query_id(name) for name in (*ROWS, "import")}
        | {name: query_choice(name, tuple(values)) for name, (_, values) in _FIXED.items()}
        | {name: _day(name) for name in _DAYS}
        | {name: query_text(name) for name in ("source", "externalid")}
        | {"order": query_choice("order", tuple(ORDERS)), "per": query_choice("per", ("15", *SIZES))}
    )
    if query["order"] == "date":
        query["order"] = None

    def take(match: re.Match[str]) -> str:
        name, written = match[1], match[2] or match[3] or ""
        value = written.lower()
        ids = {text.lower(): row_id for row_id, text in filters[name][1].items()} if name in filters else {}
        choice = (name, ids[value]) if value in ids else _WORDS.get(f"{name}:{value}")
        if name == "externalid" and written:
            choice = (name, written)
        query.update([choice] if choice else [])
        return "" if choice else match[0]

    if query["q"] and (text := _WORD.sub(take, query["q"])) != query["q"]:
        query["q"] = text.strip() or None
    return query


def chips_of(query: dict[str, Any], filters: Filters) -> list[Chip]:
    labels = {
        name: values.get(query[name], f"{label} {query[name]}") for name, (label, values) in filters.items()
    }
    labels |= {name: f"{label} {query[name]}" for name, (label, _) in _DAYS.items()}
    labels |= {name: f"{label} {query[name]}" for name, label in _OTHERS.items()} | {"q": query["q"]}
    return [
        Chip(label, url_for("console.links", **(query | {name: None})))
        for name, label in labels.items()
        if query[name]
    ]


def _limit(chosen: str | None) -> int:
    """Return the number of rows of a page: the chosen one, which later lists keep, or else the one
    that was chosen last."""
    kept = request.cookies.get(_ROWS)
    if chosen is None:
        return int(kept) if kept in SIZES else PER_PAGE

    @after_this_request
    def keep(response: Response) -> Response:
        response.set_cookie(_ROWS, chosen, path=bp.url_prefix, secure=settings().is_https, **_KEPT)
        return response

    return int(chosen)


def show(form: Form) -> str:
    if any(request.args.get(name) for name in _FILTERS) or request.args.get("order") == "recent":
        take_slot()  # before any other statement
    choices = queries.choices(g.user_id)
    filters = all_filters(choices)
    query = requested(filters)
    order, limit, number = query["order"], _limit(query["per"]), page_number()
    days = charts.spark_days(g.zone)
    page = link_lists.matching(
        g.user_id,
        conditions(query),
        order=order,
        recent=days["since"],
        limit=limit,
        number=number,
        after=None,
    )
    ids = [row["id"] for row in page.rows]
    states = (
        {row["id"]: row for row in queries.of_links(g.user_id, ids, most=MAX_TAGS, days=days)} if ids else {}
    )
    for row in page.rows:
        row["state"] = states.get(row["id"], {"type": "direct", "status": "public"})
        charts.add_spark(row, row["state"].get("days", {}))
        row["conversions"] = row["state"].get("conversions")
        if order == "recent":  # the figure that orders
            row |= {"clicks": row["recent"], "imported_clicks": 0, "conversions": 0}
    most, chips = link_lists.MAX_COMPARED if order else page.total, chips_of(query, filters)
    return render_template(
        "console/links.html",
        form=form,
        page=page._replace(total=min(page.total, most)),
        total=page.total,
        query=query,
        sizes=SIZES,
        orders=ORDERS,
        most_tags=MAX_TAGS,
        chips=chips,
        filters=filters,
        templates=choices["utm"] if has_feature("utm") else {},
        days=_DAYS,
        others=_OTHERS,
        can_check=has_feature("health") and settings().link_check,
    )
