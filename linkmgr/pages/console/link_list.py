"""The list of links: its filters, and what can be done with those that are selected. Everything is in the query."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.db.statements import Page, Row
from linkmgr.errors import AppError
from linkmgr.fields.query import page_number, query_choice, query_id, query_search
from linkmgr.pages import charts
from linkmgr.pages.console import resources
from linkmgr.pages.console.controls import to_number
from linkmgr.pages.console.frame import Chip, bp
from linkmgr.pages.console.links import FORM, MAX_CHOICES
from linkmgr.repository import bulk_changes, console_queries, plans, url_records
from linkmgr.settings import settings
from linkmgr.web import csv

MAX_SELECTED = 100
SIZES = ("15", "50", "100")  # rows of a page
MAX_TAGS = 3  # channels of a row
ORDERS = {"date": "Newest first", "click": "Most clicks first", "visitor": "Most visitors first",
          "visit": "Last visited first"}  # fmt: skip
_ROWS = ("domain", "campaign", "channel")  # filters whose values are ids of rows
# By filter with fixed values: its label, and the labels of its values.
FILTERS = {
    "status": ("Status", {"public": "Public", "private": "Private"}),
    "expired": ("Expiry", {"yes": "Expired", "no": "Not expired"}),
    "password": ("Password", {"yes": "With a password", "no": "Without a password"}),
}
_YES = "yes"
# Words of the search that are filters, besides domain:, campaign: and channel: with a name.
_WORDS = {"is:public": ("status", "public"), "is:private": ("status", "private"), "is:expired": ("expired", _YES),
          "has:password": ("password", _YES)}  # fmt: skip
_WORD = re.compile(r'(?<!\S)(domain|campaign|channel|is|has):(?:"([^"]*)"|(\S+))')
_NAMES = ("q", *_ROWS, *FILTERS, "order", "per")
_CSV = ["shorturl", "longurl", "title", "description", "campaign", "channels", "status", "expiry", "password", "clicks",
        "uniqueclicks", "date"]  # fmt: skip


def _filters(query: dict[str, Any]) -> Row:
    """Return the filters as repository.url_records takes them."""
    return {name: query[name] and int(query[name]) for name in _ROWS} | {
        "q": query["q"],
        "public": query["status"] and query["status"] == "public",
        "expired": query["expired"] and query["expired"] == _YES,
        "password": query["password"] and query["password"] == _YES,
    }


def _page(query: dict[str, Any]) -> Page:
    filters, order = _filters(query), query["order"]
    paging: Any = {"limit": int(query["per"] or resources.PER_PAGE), "number": page_number(), "after": None}
    if order or any(query[name] for name in (*_ROWS, *FILTERS)):
        return url_records.matching(g.user_id, filters, order=order, **paging)
    if query["q"]:
        return url_records.search(g.user_id, query["q"], **paging)
    return url_records.index(g.user_id, **paging)


def _query(choices: dict[str, list[Row]]) -> dict[str, Any]:
    """Return the filters and the order, which are None by default."""
    query: dict[str, Any] = (
        {"q": query_search()}
        | {name: query_id(name) for name in _ROWS}
        | {name: query_choice(name, tuple(values)) for name, (_, values) in FILTERS.items()}
        | {"order": query_choice("order", tuple(ORDERS)), "per": query_choice("per", SIZES)}
    )
    if query["order"] == "date":
        query["order"] = None

    def take(match: re.Match[str]) -> str:
        """Set the filter that a word of the search names. Keep other words."""
        name, value = match[1], (match[2] or match[3] or "").lower()
        ids = {row["name"].rpartition("://")[2].lower(): str(row["id"]) for row in choices.get(name, ())}
        choice = (name, ids[value]) if value in ids else _WORDS.get(f"{name}:{value}")
        query.update([choice] if choice else [])
        return "" if choice else match[0]

    if query["q"] and (text := _WORD.sub(take, query["q"])) != query["q"]:
        query["q"] = text.strip() or None
    return query


def _chips(query: dict[str, Any], choices: dict[str, list[Row]]) -> list[Chip]:
    labels = {}
    for name in _ROWS:
        names = {str(row["id"]): row["name"].rpartition("://")[2] for row in choices[name]}
        names["0"] = settings().base_url.rpartition("://")[2]
        labels[name] = names.get(query[name] or "", f"{name.capitalize()} {query[name]}")
    labels |= {name: values.get(query[name], "") for name, (_, values) in FILTERS.items()} | {"q": query["q"]}
    return [
        Chip(label, url_for("console.links", **(query | {name: None}))) for name, label in labels.items() if query[name]
    ]


@bp.get("/links")
def links() -> str:
    """Show one page of the list. Statements: the list with its total, states and clicks of its links, and the names of
    what they can belong to."""
    rows = console_queries.choices(g.user_id, limit=MAX_CHOICES)
    choices = {kind: [row for row in rows if row["kind"] == kind] for kind in _ROWS}
    query = _query(choices)
    page = _page(query)
    ids = [row["id"] for row in page.rows]
    days = charts.spark_days(g.zone)
    states = (
        {row["id"]: row for row in console_queries.of_links(g.user_id, ids, most=MAX_TAGS, days=days)} if ids else {}
    )
    for row in page.rows:
        row["state"] = states.get(row["id"], {"type": "direct", "public": True})
        charts.add_spark(row, row["state"].get("days", {}))
    most = url_records.MAX_COMPARED if query["order"] else page.total
    return render_template(
        "console/links.html",
        form=FORM,
        page=page._replace(total=min(page.total, most)),
        total=page.total,
        query=query,
        sizes=SIZES,
        orders=ORDERS,
        most_tags=MAX_TAGS,
        chips=_chips(query, choices),
        choices=choices,
        filters=FILTERS,
        base_url=settings().base_url,
    )


# --- the selected links


def _back() -> Response:
    """Return to the list with the filters that it had."""
    sent = dict(parse_qsl(request.form.get("back", "")))
    query: Any = {name: sent[name] for name in _NAMES if name in sent}
    return redirect(url_for("console.links", **query), code=303)


def _change(
    change: Callable[[int, list[int], int], int], member: str, sentence: str
) -> Callable[[list[int]], Response]:
    def store(ids: list[int]) -> Response:
        row_id = to_number(request.form.get(member, ""))
        if isinstance(row_id, int):
            flash(f"{_links(change(g.user_id, ids, row_id))} {sentence}.", "success")
        else:
            flash(f"Choose a {member} first.", "error")
        return _back()

    return store


def _links(number: int) -> str:
    return f"{number:,} link{'' if number == 1 else 's'}"


def _ask(ids: list[int]) -> str:
    return render_template("console/links_delete.html", ids=ids, rows=url_records.selected(g.user_id, ids))


def _delete(ids: list[int]) -> Response:
    flash(f"{_links(bulk_changes.delete_selected(g.user_id, ids))} deleted.", "success")
    return _back()


def _export(ids: list[int]) -> Response:
    plans.require_exports(g.user_id)
    disposition = {"Content-Disposition": 'attachment; filename="links.csv"'}
    return csv.respond(_CSV, url_records.selected(g.user_id, ids), **disposition)


# By value of the button.
_ACTIONS: dict[str, Callable[[list[int]], ResponseReturnValue]] = {
    "ask": _ask,
    "delete": _delete,
    "export": _export,
    "campaign": _change(bulk_changes.set_campaign, "campaign", "moved"),
    "channel": _change(bulk_changes.add_to_channel, "channel", "added to the channel"),
}


@bp.post("/links/selected")
def links_change() -> ResponseReturnValue:
    action = _ACTIONS.get(request.form.get("action", ""))
    ids = [number for number in map(to_number, request.form.getlist("id")[:MAX_SELECTED]) if isinstance(number, int)]
    if action is None:
        raise AppError("invalid", problems=f"action must be one of {', '.join(_ACTIONS)}")
    if not ids:
        flash("Select links first.", "error")
        return _back()
    return action(ids)
