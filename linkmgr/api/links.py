import orjson
from flask import Blueprint, Response

from linkmgr.core.database.paging import Page
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import shapes
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.query import (
    PAGING,
    SEARCH,
    STATISTICS,
    Parameter,
    host_of,
    paging,
    row_id,
    values_of,
    wants_statistics,
)
from linkmgr.core.fields.short_urls import parse_short_url
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.core.fields.zones import TIME, parse_time
from linkmgr.core.web import pool, scopes
from linkmgr.core.web.auth import caller, user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import (
    Json,
    listing,
    ok,
    record,
    updated,
    versioned,
    with_record,
    with_statistics,
)
from linkmgr.repository import link_bin, link_lists, link_records, links
from linkmgr.schemas.links import HEALTH, Link, change_link, create_link
from linkmgr.schemas.statistics import STATISTICS as STATISTICS_SHAPE
from linkmgr.schemas.tries import TRIED, DescribedVisitor, try_link

bp = Blueprint("urls", __name__, url_prefix="/api")
SECTION = Section(
    "links",
    "Links",
    prose(__file__, days=link_bin.DAYS),
    lambda: shapes.records_of(Link) | {"Statistics": STATISTICS_SHAPE},
    tables={"Conditions of rules": "Conditions"},
)

QUERY = {
    "order": Parameter(
        "`click` lists the links with the most `clicks` and `imported_clicks` first, without "
        "`next` and `after`. Any other value means `date`: newest first.",
        default="date",
        examples=["click"],
    ),
    "sort": Parameter(
        "`asc` reverses the order: oldest or least clicked first, without `next` and `after`.",
        enum=["desc", "asc"],
        title="SortDirection",
        default="desc",
    ),
    "q": SEARCH,
    "campaign": Parameter("The links of a campaign.", row_id, pattern="^[0-9]+$", examples=["17"]),
    "channel": Parameter("The links of a channel.", row_id, pattern="^[0-9]+$", examples=["17"]),
    "status": Parameter("The links with this status.", enum=["private", "public"], title="LinkStatus"),
    "clicked": Parameter(
        "`no`: the links without clicks, imported ones too. `yes`: the others.", enum=["no", "yes"]
    ),
    "health": Parameter("The links whose `health` has this `state`.", enum=[*HEALTH], title="HealthState"),
    "from": Parameter(
        "The links that were created at this time or later.",
        parse_time,
        pattern=TIME,
        examples=["2026-10-01"],
    ),
    "to": Parameter(
        "The links that were created before this time.", parse_time, pattern=TIME, examples=["2026-11-01"]
    ),
    "bin": Parameter(
        f"`1` lists the links in the bin, which were deleted in the last {link_bin.DAYS} days, the "
        "last deleted first, without `next` and `after`. The other filters do not apply.",
        enum=["0", "1"],
        default="0",
        title="Flag",
    ),
    "alias": Parameter("The alias of one link, as with `short`.", examples=["summer"]),
    "domain": Parameter(
        "The links of a branded domain, or of this service. With `alias`, the domain of the one link.",
        maxLength=MAX_URL,
        examples=["go.example.com"],
    ),
    "short": Parameter(
        "The short URL of one link, with either scheme or none, and for this service also without the host.",
        maxLength=MAX_URL,
        examples=["https://go.example.org/summer"],
    ),
    **STATISTICS,
}

TO_BIN = {
    "bin": Parameter(
        f"`1` moves a link to the bin: for {link_bin.DAYS} days `POST "
        f"/api/url/{{link_id}}/restore` brings it back, and its alias stays reserved.",
        enum=["0", "1"],
        default="0",
    )
}
_FOUND = shapes.success(
    data={
        "allOf": [
            shapes.ref("Page"),
            shapes.object_of(urls=shapes.array_of(shapes.ref("LinkListed"))),
            shapes.object_of(**STATISTICS_SHAPE["properties"])
            | {"required": [], "description": "With `short` only."},
        ]
    },
    id=shapes.ID | {"description": "With `short` only."},
    details=shapes.ref("Link"),
    record=shapes.ref("Link"),
)
_LIST = shapes.with_error(_FOUND, "short_url_unknown", "If no link has this `short`.") | {
    "required": ["error"]
}
_LIST["examples"] = [
    shapes.example_of(shapes.listing_schema("urls", Link), shapes.RECORDS | shapes.records_of(Link))
]

_SHORT = {"id": shapes.ID, "shorturl": shapes.own_url("summer"), "short": shapes.own_url("summer")}
_RECORD = {"details": shapes.ref("Link"), "data": shapes.ref("Statistics"), "record": shapes.ref("Link")}
_ERRORS = (
    "plan_feature", "alias_taken", "alias_reserved", "link_branded", "domain_unknown", "domain_in_use",
    "campaign_unknown", "splash_unknown", "overlay_unknown", "pixel_unknown", "channel_unknown", "domain_needed",
    "target_blocked", "starts_late", "password_busy",
)  # fmt: skip
_NEW = {
    "url": "https://example.com/sale",
    "custom": "summer",
    "expiry": "2030-12-31 23:59:59",
    "geotarget": [{"location": "Germany", "link": "https://example.de/sale"}],
    "parameters": [{"name": "utm_source", "value": "newsletter"}],
}


def _single(link: Row) -> Json:
    return {"id": link["id"]} | with_statistics(Link, link)


def _written(message: str | None, link: Row, verb: str = "changed") -> Response:
    short = {"id": link["id"], "shorturl": link["shorturl"], "short": link["shorturl"]}
    # In the order of a read
    members = {"id": link["id"], "data": link["statistics"], "details": record(Link, link)}
    return updated(message, link["version"], short, verb=verb, **members)


def _find(short: str) -> Json:
    """Return the link with this short URL as `read` does, with the members of a list besides."""
    page, parsed = paging(), parse_short_url(short)
    link = link_records.find_by_short_url(user_id(), parsed) if parsed else None
    if link is None:
        raise AppError("short_url_unknown")
    response = with_record(_single(link))
    totals = {"clicks": response["data"]["clicks"], "uniqueclicks": response["data"]["uniqueClicks"]}
    after, number = page["after"], page["number"]
    on_page = link["id"] < after if after else number == 1
    rows = Page([link | totals] if on_page else [], 1, page["limit"], None if after else number, None)
    listed = listing("urls", rows, Link)
    return ok(**response | {"data": (response["data"] if wants_statistics() else {}) | listed["data"]})


def _list_links(sent: Row) -> Page:
    page, order = paging(), "click" if sent["order"] == "click" else "date"
    if sent["bin"] == "1":
        if page["after"]:
            raise invalid("after requires bin=0. Use page to list the bin")
        return link_bin.index(user_id(), **page)
    if page["after"] and order == "click":
        raise invalid("after requires order=date. Use page to list links by clicks")
    if page["after"] and sent["sort"] == "asc":
        raise invalid("after requires sort=desc. Use page to list the oldest links first")
    filters = {name: sent.get(name) for name in link_lists.FILTERS}
    filters |= {"domain": None, "since": sent["from"], "until": sent["to"]}
    if sent["domain"]:
        filters["domain"] = link_lists.domain_id(user_id(), host_of("domain", sent["domain"]))
    if (order, sent["sort"]) != ("date", "desc") or any(value is not None for value in filters.values()):
        pool.take_for(link_lists.number_of(user_id()), "search_busy")
    return link_lists.listed(user_id(), filters, order=order, sort=sent["sort"], **page)


@bp.get("/urls")
@operation(
    "links:read",
    "links.list",
    _LIST,
    query=QUERY | PAGING,
    errors=("address_too_long", "domain_unknown", "search_busy"),
    restricted=("own_only", "domains"),
)
def index() -> Json:
    """List links.

    With `short`, the response is the one of `GET /api/url/{link_id}`: `id`, `details`, and the
    statistics in `data`. In addition, `data` has the members of a list, with the link in `urls`. If
    you have no link with this short URL, the response has the status 200, `error` 1, the code
    `short_url_unknown` and no `data`.
    """
    sent = values_of(QUERY)
    if short := sent["short"]:
        return _find(short)
    alias, domain = sent["alias"], (sent["domain"] or "").removesuffix("/")
    if alias:
        return _find("" if "/" in alias else f"{domain}/{alias}" if domain else alias)
    return listing("urls", _list_links(sent), Link)


@bp.get("/url/<id:link_id>")
@operation(
    "links:read",
    "links.get",
    shapes.success(id=shapes.ID, **_RECORD) | {"required": ["error", "id", "details", "record"]},
    query=STATISTICS,
    has_etag=True,
    restricted=("own_only", "domains"),
)
def read(link_id: int) -> Response:
    """Read a link."""
    link = link_records.read_from_replica(user_id(), link_id, statistics=wants_statistics())
    return versioned(link["version"], **_single(link))


@bp.post("/url/add")
@operation(
    "links:create",
    "links.create",
    shapes.success(**_SHORT, **_RECORD) | {"required": ["error", *_SHORT]},
    body=Link.creates(),
    example=_NEW,
    errors=("plan_limit", *_ERRORS),
    has_etag=True,
    restricted=("own_only", "domains"),
)
def add(new: Row) -> Response:
    """Add a link."""
    link = create_link(user_id(), new)
    response = _written(None, link, "set")
    if (key := caller().key) and not scopes.has(key, "links:read"):  # it may be an older one of the same URL
        short = {"id": link["id"], "shorturl": link["shorturl"], "short": link["shorturl"]}
        response.set_data(orjson.dumps(ok(**short)))
    return response


@bp.put("/url/<id:link_id>/update")
@operation(
    "links:write",
    "links.update",
    shapes.success(message="Link has been updated successfully.", **_SHORT, **_RECORD),
    body=Link.updates(),
    stored=links.read,
    example={"url": "https://example.com/winter", "metatitle": "Winter sale"},
    errors=_ERRORS,
    row="links",
    has_etag=True,
    restricted=("own_only", "domains"),
)
def update(changes: Row, link_id: int) -> Response:
    """Change a link."""
    return _written("Link has been updated successfully.", change_link(user_id(), link_id, changes))


@bp.delete("/url/<id:link_id>/delete")
@operation(
    "links:write",
    "links.delete",
    shapes.done("Link has been deleted successfully."),
    query=TO_BIN,
    row="links",
    restricted=("own_only", "domains"),
)
def delete(link_id: int) -> Json:
    """Delete a link.

    This is final, also for a link in the bin, unless `bin` is `1`.
    """
    delete_link = link_bin.put if values_of(TO_BIN)["bin"] == "1" else links.delete
    delete_link(user_id(), link_id)
    return ok("Link has been deleted successfully.")


@bp.post("/url/<id:link_id>/restore")
@operation(
    "links:write",
    "links.restore",
    shapes.success(message="Link has been restored successfully.", **_SHORT, **_RECORD),
    errors=("plan_limit", "plan_feature", "target_blocked"),
    has_etag=True,
    restricted=("own_only", "domains"),
)
def restore(link_id: int) -> Response:
    """Restore a link from the bin.

    It has its id, alias, statistics and channels as before, without rows that were deleted
    meanwhile, such as its campaign. A new link of the same URL does not return it.
    """
    link_bin.restore(user_id(), link_id)
    return _written("Link has been restored successfully.", links.read(user_id(), link_id))


@bp.post("/url/<id:link_id>/try")
@operation(
    "links:read",
    "links.tryVisitor",
    shapes.success(data=TRIED),
    body=DescribedVisitor,
    example={"country": "France", "device": "iphone", "query": "ref=partner"},
    restricted=("own_only", "domains"),
)
def try_visitor(described: Row, link_id: int) -> Json:
    """Try a link.

    The response says where a visitor would get, which rule matches, and why those before it do not.
    No member is required. Nothing is changed or counted. Passwords and pages before the target are
    left out.
    """
    return ok(data=try_link(user_id(), link_id, described))
