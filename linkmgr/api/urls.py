"""/api/urls and /api/url"""

import orjson
from flask import Blueprint, Response

from linkmgr.api import usual
from linkmgr.api.stats import list_visits
from linkmgr.db.statements import Page
from linkmgr.errors import AppError
from linkmgr.fields.bodies import body
from linkmgr.fields.problems import invalid
from linkmgr.fields.query import SEARCH, Parameter, paging, values_of
from linkmgr.fields.short_urls import parse_short_url
from linkmgr.fields.urls import MAX_URL
from linkmgr.repository import url_records
from linkmgr.request import pool, scopes
from linkmgr.request.request import warn
from linkmgr.resources.urls import Link
from linkmgr.web.auth import caller, user_id
from linkmgr.web.responses import Json, listing, ok

bp = Blueprint("urls", __name__)
usual.add_routes(bp, Link, "read", "update", "delete")

QUERY = {
    "order": Parameter(
        "`click` lists the most clicked links first, without `next` and `after`. Any other value means "
        "`date`: newest first.",
        default="date",
        examples=["click"],
    ),
    "q": SEARCH,
    "alias": Parameter("The alias of one link, as with `short`.", examples=["summer"]),
    "domain": Parameter("The branded domain of `alias`.", maxLength=MAX_URL),
    "short": Parameter(
        "The short URL of one link. The scheme can be omitted, and for this service also the host.",
        maxLength=MAX_URL,
        examples=["https://go.example.org/summer"],
    ),
}


def _find(short: str) -> Json:
    """Return the link with this short URL as `read` does, with the members of a list besides."""
    page, parsed = paging(), parse_short_url(short)
    link = url_records.find_by_short_url(user_id(), parsed) if parsed else None
    if link is None:
        raise AppError("short_url_unknown")
    record = Link.as_read(link)
    totals = {"clicks": record["data"]["clicks"], "uniqueclicks": record["data"]["uniqueClicks"]}
    row = {name: (link | totals)[name] for name in Link.shown("list")}
    after, number = page["after"], page["number"]
    on_page = link["id"] < after if after else number == 1
    listed = listing("urls", Page([row] if on_page else [], 1, page["limit"], None if after else number, None))
    return ok(**record | {"data": record["data"] | listed["data"]})


def _list_links(q: str | None, *, by_clicks: bool) -> Page:
    page = paging()
    if by_clicks and page["after"]:
        raise invalid("after requires order=date. Use page to list links by clicks")
    if q or by_clicks:
        pool.take_for(url_records.number_of(user_id()), "search_busy")
        return url_records.search(user_id(), q or "", by_clicks=by_clicks, **page)
    return url_records.index(user_id(), **page)


@bp.get("/urls")
def index() -> Json:
    sent = values_of(QUERY)
    if short := sent["short"]:
        return _find(short)
    alias, domain = sent["alias"], (sent["domain"] or "").removesuffix("/")
    if alias:
        return _find("" if "/" in alias else f"{domain}/{alias}" if domain else alias)
    if domain:
        warn("domain was ignored: it goes with alias.")
    return listing("urls", _list_links(sent["q"], by_clicks=sent["order"] == "click"))


@bp.get("/url/<id:link_id>/visits")
def visits(link_id: int) -> Json | Response:
    return list_visits(link_id, what="link")


@bp.post("/url/add")
def add() -> Response:
    response = usual.add(Link, body(Link.creates()))
    if not scopes.has(caller().key, "links:read"):  # the link may be an older one of the same URL
        members = response.get_json()
        shown = ("error", "id", "shorturl", "short", "warnings")
        response.set_data(orjson.dumps({name: members[name] for name in shown if name in members}))
    return response
