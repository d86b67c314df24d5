"""The list of links: its filters, and what can be done with those that are selected. Everything is in the query."""

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from itertools import islice
from typing import Any, NamedTuple

from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.api import export
from linkmgr.db.paging import Page
from linkmgr.db.statements import MAX_BIGINT, Row
from linkmgr.errors import AppError
from linkmgr.fields.bodies import load, problems
from linkmgr.fields.periods import start_of_day
from linkmgr.fields.query import SEARCH, page_number, query_choice, query_id, values_of
from linkmgr.pages import charts, signed_in
from linkmgr.pages.console import periods
from linkmgr.pages.console.controls import to_number
from linkmgr.pages.console.forms import PER_PAGE, Form
from linkmgr.pages.console.frame import Chip, bp
from linkmgr.repository import binned, bulk_changes, console_queries, link_lists, plans
from linkmgr.request import pool
from linkmgr.resources.urls import Link, link_to_changes
from linkmgr.settings import settings
from linkmgr.web import csv
from linkmgr.web import export as web_export

MAX_SELECTED = 100
BATCH = 500  # links of a statement
MAX_BATCHES = 10  # of a request that changes all links that the filters match
SIZES = ("15", "50", "100")  # rows of a page
MAX_TAGS = 3  # channels of a row
ORDERS = {"date": "Last added first", "created": "Last created first", "oldest": "First created first",
          "click": "Most clicks first", "fewest": "Fewest clicks first", "recent": "Most clicks in 28 days",
          "visitor": "Most visitors first", "visit": "Last visited first"}  # fmt: skip
_ROWS = ("domain", "campaign", "channel")  # filters whose values are ids of rows
_FIXED = {  # filters with fixed values
    "status": ("Status", {"public": "Public", "private": "Private"}),
    "expired": ("Expiry", {"yes": "Expired", "no": "Not expired"}),
    "password": ("Password", {"yes": "With a password", "no": "Without a password"}),
}
_DAYS = {"since": ("Created since", 0), "until": ("Created until", 1)}  # labels, and days to the end of what is meant
_FIRST, _LAST = date(2000, 1, 1), date(2100, 1, 1)
_YES = "yes"
# Words of the search that are filters, besides domain:, campaign: and channel: with a name.
_WORDS = {"is:public": ("status", "public"), "is:private": ("status", "private"), "is:expired": ("expired", _YES),
          "has:password": ("password", _YES)}  # fmt: skip
_WORD = re.compile(r'(?<!\S)(domain|campaign|channel|is|has):(?:"([^"]*)"|(\S+))')
_FILTERS = ("q", *_ROWS, *_FIXED, *_DAYS)
_NAMES = (*_FILTERS, "order", "per")
_CSV = export.columns(
    "shorturl longurl title description campaign channels status expiry password clicks uniqueclicks date"
)


Filters = dict[str, tuple[str, dict[str, str]]]  # by name: the label, and the labels of the values


def _filters() -> Filters:
    rows = console_queries.choices(g.user_id)
    rows["domain"] = {"0": settings().base_url} | rows["domain"]
    return {
        name: (name.capitalize(), {row_id: text.rpartition("://")[2] for row_id, text in rows[name].items()})
        for name in _ROWS
    } | _FIXED


def _conditions(query: dict[str, Any]) -> Row:
    times = {
        name: start_of_day(date.fromisoformat(query[name]) + timedelta(days=days), g.zone).isoformat()
        for name, (_, days) in _DAYS.items()
        if query.get(name)
    }
    return {name: query.get(name) for name in link_lists.FILTERS} | times


def _day(name: str) -> str | None:
    day = periods.parse_date(name)
    return min(max(day, _FIRST), _LAST).isoformat() if day else None


def _page(query: dict[str, Any]) -> Page:
    limit = int(query["per"] or PER_PAGE)
    return link_lists.matching(
        g.user_id, _conditions(query), order=query["order"], limit=limit, number=page_number(), after=None
    )


def _take_place() -> None:
    pool.take_for(g.account["used"].get("links", 0), "search_busy")


def _query(filters: Filters) -> dict[str, Any]:
    query: dict[str, Any] = (
        values_of({"q": SEARCH})
        | {name: query_id(name) for name in _ROWS}
        | {name: query_choice(name, tuple(values)) for name, (_, values) in _FIXED.items()}
        | {name: _day(name) for name in _DAYS}
        | {"order": query_choice("order", tuple(ORDERS)), "per": query_choice("per", SIZES)}
    )
    if query["order"] == "date":
        query["order"] = None

    def take(match: re.Match[str]) -> str:
        name, value = match[1], (match[2] or match[3] or "").lower()
        ids = {text.lower(): row_id for row_id, text in filters[name][1].items()} if name in filters else {}
        choice = (name, ids[value]) if value in ids else _WORDS.get(f"{name}:{value}")
        query.update([choice] if choice else [])
        return "" if choice else match[0]

    if query["q"] and (text := _WORD.sub(take, query["q"])) != query["q"]:
        query["q"] = text.strip() or None
    return query


def _chips(query: dict[str, Any], filters: Filters) -> list[Chip]:
    labels = {name: values.get(query[name], f"{label} {query[name]}") for name, (label, values) in filters.items()}
    labels |= {name: f"{label} {query[name]}" for name, (label, _) in _DAYS.items()} | {"q": query["q"]}
    return [
        Chip(label, url_for("console.links", **(query | {name: None}))) for name, label in labels.items() if query[name]
    ]


def show(form: Form) -> str:
    if any(request.args.get(name) for name in _FILTERS) or request.args.get("order") == "recent":
        _take_place()  # before any other statement
    filters = _filters()
    query = _query(filters)
    page = _page(query)
    ids = [row["id"] for row in page.rows]
    days = charts.spark_days(g.zone)
    states = (
        {row["id"]: row for row in console_queries.of_links(g.user_id, ids, most=MAX_TAGS, days=days)} if ids else {}
    )
    for row in page.rows:
        row["state"] = states.get(row["id"], {"type": "direct", "public": True})
        charts.add_spark(row, row["state"].get("days", {}))
    most, chips = link_lists.MAX_COMPARED if query["order"] else page.total, _chips(query, filters)
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
        is_filtered=bool(chips),
        filters=filters,
        days=_DAYS,
        base_url=settings().base_url,
    )


# --- the selected links, or all that the filters match


class Change(NamedTuple):
    verb: str
    done: str
    store: Callable[[int, list[int], Any], int]
    member: str = ""
    where: str = ""  # says what the links get, with the chosen value


def _set(member: str) -> Callable[[int, list[int], Any], int]:
    return lambda user_id, ids, value: bulk_changes.set_members(
        user_id, ids, **link_to_changes(load(Link.updates(), {member: value}))
    )


# By value of the button.
CHANGES = {
    "delete": Change("Delete", "deleted", lambda user_id, ids, _: binned.put_all(user_id, ids)),
    "campaign": Change("Move", "moved", bulk_changes.set_campaign, "campaign", " to the campaign {}"),
    "channel": Change("Add", "added to the channel", bulk_changes.add_to_channel, "channel", " to the channel {}"),
    "unassign": Change(
        "Remove", "removed from the channel", bulk_changes.remove_from_channel, "channel", " from the channel {}"
    ),
    "status": Change("Make", "changed", _set("status"), "status", " {}"),
    "expiry": Change("Expire", "changed", _set("expiry"), "expiry", " at {}"),
}
_ACTIONS = ("ask", "export", *CHANGES)
_POSITION = ("below", "number", "done")  # fields that say how far a change of all is


def selected_ids() -> list[int]:
    numbers = map(to_number, request.form.getlist("id")[:MAX_SELECTED])
    return [number for number in numbers if isinstance(number, int)]


def say_deleted(sentence: str, ids: list[int]) -> None:
    """Say that links are in the bin, with a button that restores them."""
    flash(sentence, " ".join(map(str, ["binned", *ids])))


def _list_query() -> dict[str, Any]:
    return {name: request.args[name] for name in _NAMES if name in request.args}


def _back(message: str = "", category: str = "error") -> Response:
    if message:
        flash(message, category)
    return redirect(url_for("console.links", **_list_query()), code=303)


def _batches(user_id: int, ids: list[int], filters: Row, below: int = MAX_BIGINT) -> Iterator[list[int]]:
    if ids:
        yield ids
    while not ids and below:
        matched = link_lists.matched_ids(user_id, filters, below, BATCH)
        yield from [matched] if matched else []
        below = matched[-1] if len(matched) == BATCH else 0


def _position(name: str) -> int:
    number = to_number(request.form.get(name) or "0")
    if not isinstance(number, int):
        raise AppError("invalid", problems=f"{name} must be an integer")
    return number


@bp.get("/links/selected")
def links_selected() -> Response:
    """Redirect browsers that open the URL of the question."""
    return _back()


@bp.post("/links/selected")
def links_change() -> ResponseReturnValue:
    action, is_all = request.form.get("action", ""), bool(request.form.get("all"))
    ids = [] if is_all else selected_ids()
    if action not in _ACTIONS:
        raise AppError("invalid", problems=f"action must be one of {', '.join(_ACTIONS)}")
    if not (is_all or ids):
        return _back("Select links first.")
    filters = _filters() if is_all else {}
    query = _query(filters) if is_all else {}
    if action != "export":
        _take_place()
        return _change(action, ids, query, filters)
    plans.require_exports(g.user_id)
    user_id = g.user_id
    rows = (console_queries.selected(user_id, some) for some in _batches(user_id, ids, _conditions(query)))
    return web_export.download(web_export.encode("csv", _CSV, rows), csv.MIMETYPE, "links.csv")


def _change(action: str, ids: list[int], query: Row, filters: Filters) -> ResponseReturnValue:
    """Ask before links are deleted, and before all that match the filters are changed. Otherwise change the links, a
    bounded number of them at a time.

    Links that were created after the question are not changed: their ids are not `below` that of the form.
    """
    name, rows = "delete" if action == "ask" else action, []
    change, chosen = CHANGES[name], _conditions(query)
    value = _value(change, filters)
    if value is None:
        return _back(f"Choose {'an' if change.member == 'expiry' else 'a'} {change.member} first.")
    below, number, done = map(_position, _POSITION)
    if action != "ask" and (ids or below):
        batches = _batches(g.user_id, ids, chosen, below)
        for some in islice(batches, MAX_BATCHES):
            done, below = done + change.store(g.user_id, some, value), some[-1]
        if not next(batches, None):
            sentence = f"{charts.count(done, 'link')} {change.done}."
            if action != "delete":
                return _back(sentence, "success")
            say_deleted(sentence, ids)
            return _back()
    elif ids:
        rows = console_queries.selected(g.user_id, ids)
        number = len(rows)
    else:
        newest = link_lists.matching(g.user_id, chosen, limit=1, number=1, after=None)
        if not newest.rows:
            return _back("No link matches the filters.")
        number, below = newest.total, newest.rows[0]["id"] + 1
    return render_template(
        "console/links_change.html",
        everything={} if ids else dict(zip(_POSITION, (below, number, done), strict=True)),
        change=change,
        action=name,
        number=number,
        chips=_chips(query, filters) if query else [],
        value=request.form.get(change.member, ""),
        where=_where(change, value, filters),
        ids=ids,
        rows=rows,
        query=_list_query(),
        days=binned.DAYS,
    )


def _value(change: Change, filters: Filters) -> Any:
    """Return the value that was chosen for a change, or None. If all links are changed, it is among the `filters`."""
    text = request.form.get(change.member, "") if change.member else "0"
    if change.member in Link.controls() and change.member not in _ROWS:
        value = signed_in.from_control(text)
        return None if not text or problems(Link.updates(), {change.member: value}) else value
    row_id, (_, names) = to_number(text), filters.get(change.member, ("", {}))
    return row_id if isinstance(row_id, int) and (not row_id or not filters or str(row_id) in names) else None


def _where(change: Change, value: Any, filters: Filters) -> str:
    if change.member == "campaign" and not value:
        return " out of their campaigns"
    _, names = filters.get(change.member, ("", {}))
    return change.where.format(signed_in.exact(value) if change.member == "expiry" else names.get(str(value), value))
