import orjson
from flask import Blueprint, Response, request

from linkmgr.core.database.paging import Page
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import shapes
from linkmgr.core.fields.bodies import changes_of, load, parse
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.query import (
    ID,
    IDS,
    MAX_IDS,
    PAGING,
    SEARCH,
    STATISTICS,
    Parameter,
    host_of,
    paging,
    row_id,
    row_ids,
    url_of,
    values_of,
    wants_statistics,
)
from linkmgr.core.fields.short_urls import parse_short_url
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.core.fields.zones import TIME, parse_time
from linkmgr.core.settings import settings
from linkmgr.core.web import pool, scopes
from linkmgr.core.web.auth import caller, user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.request import current, warn
from linkmgr.core.web.responses import (
    Json,
    listing,
    ok,
    updated,
    versioned,
    with_record,
    with_statistics,
)
from linkmgr.repository import link_bin, link_lists, link_records, links
from linkmgr.schemas.links import EXISTING, HEALTH, Link, change_link, create_link, warn_lost_externalids
from linkmgr.schemas.statistics import STATISTICS as STATISTICS_SHAPE
from linkmgr.schemas.tries import TRIED, DescribedVisitor, try_link
from linkmgr.visits import rules, targets

bp = Blueprint("urls", __name__, url_prefix="/api")
SECTION = Section(
    "links",
    "Links",
    prose(__file__, days=link_bin.DAYS),
    lambda: shapes.records_of(Link) | {"Statistics": STATISTICS_SHAPE},
    apart=Section(
        "targets",
        "Targets and visits",
        prose(rules.__file__, targets=targets),
        tables={"Conditions of rules": "Conditions"},
    ),
)

QUERY = {
    "order": Parameter(
        "`date` lists the newest links first, `click` those with the most `clicks` and `imported_clicks`, and "
        "`updated` those that were changed last. Only the first has `next` and `after`.",
        enum=["date", "click", "updated"],
        title="LinkOrder",
        default="date",
    ),
    "sort": Parameter(
        "`asc` reverses the order, without `next`.",
        enum=["desc", "asc"],
        title="SortDirection",
        default="desc",
    ),
    "q": SEARCH,
    "campaign": Parameter("The links of a campaign.", row_id, **ID),
    "channel": Parameter("The links of a channel.", row_id, **ID),
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
        "last first, without `next` and other filters.",
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
        "The short URL of one link, also without scheme, and for this service without host.",
        maxLength=MAX_URL,
        examples=["https://go.example.org/summer"],
    ),
    "externalid": Parameter("The link with this `externalid`.", examples=["order-17"]),
    "ids": Parameter(f"The links with these ids, up to {MAX_IDS}.", row_ids, is_list=True, **IDS),
    "target": Parameter(
        "The links with exactly this `url`.", url_of, maxLength=MAX_URL, examples=["https://example.com/sale"]
    ),
    "updated_since": Parameter(
        "The links that were created or changed at this time or later. With `order=updated`, a program reads on all "
        "pages (`page`) what has changed since it last began to read.",
        parse_time,
        pattern=TIME,
        examples=["2026-11-21 09:30:00"],
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
_WITH_SHORT = "With `short` only."
_FOUND = shapes.success(
    "LinkList",
    data=shapes.page_of(
        "Link",
        "urls",
        "LinkListed",
        **{
            name: member | {"description": _WITH_SHORT}
            for name, member in STATISTICS_SHAPE["properties"].items()
        },
    ),
    id=shapes.ID | {"description": _WITH_SHORT},
    details=shapes.ref("Link"),
    record=shapes.ref("Link"),
)
_LIST = shapes.with_error(_FOUND, "short_url_unknown", "If no link has this `short`.")
_LIST["required"] = ["error"]
_LIST["examples"] = [
    shapes.example_of(shapes.listing_schema("urls", Link), shapes.RECORDS | shapes.records_of(Link))
]

_SHORT = {"id": shapes.ID, "shorturl": shapes.own_url("summer"), "short": shapes.own_url("summer")}
IS_NEW = shapes.schema_of(True) | {"description": "False if this is a link of the URL that you already had."}
_RECORD = {"details": shapes.ref("Link"), "data": shapes.ref("Statistics"), "record": shapes.ref("Link")}
_CREATED = shapes.success("LinkCreated", **_SHORT, is_new=IS_NEW, **_RECORD)
_CREATED["required"] = ["error", *_SHORT, "is_new"]
_READ = shapes.success("LinkResponse", **_SHORT, **_RECORD)
_READ["required"] = ["error", "id", "details", "record"]
_ERRORS = (
    "plan_feature", "alias_taken", "alias_reserved", "alias_wide", "link_branded", "domain_unknown", "domain_in_use",
    "campaign_unknown", "splash_unknown", "overlay_unknown", "pixel_unknown", "channel_unknown", "domain_needed",
    "target_blocked", "starts_late", "externalid_taken", "password_busy",
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
    return updated(message, link["version"], _short(link), verb=verb, **_single(link))


def _short(link: Row) -> Json:
    is_new = {"is_new": link["is_new"]} if "is_new" in link else {}
    return {"id": link["id"], "shorturl": link["shorturl"], "short": link["shorturl"]} | is_new


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
    page, order = paging(), sent["order"]
    if sent["bin"] == "1":
        if page["after"]:
            raise invalid("after requires bin=0. Use page to list the bin")
        return link_bin.index(user_id(), **page)
    if page["after"] and order != "date":
        what = "by clicks" if order == "click" else "by their last change"
        raise invalid(f"after requires order=date. Use page to list links {what}")
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

    Use it to find links by text, short URL, state or time. `order=click` compares the clicks since
    their creation; for the links with the most clicks of a period, use `GET
    /api/stats?by=target&names=1&period=last_month`.

    With `short`, the response is the one of `GET /api/url/{link_id}`, with the members of a list in
    `data`. Without such a link, its status is 200, `error` 1 and `code` `short_url_unknown`.
    """
    sent = values_of(QUERY)
    if short := sent["short"]:
        return _find(short)
    alias, domain = sent["alias"], (sent["domain"] or "").removesuffix("/")
    if alias:
        return _find(f"{domain or settings().base_url}/{alias}")
    return listing("urls", _list_links(sent), Link)


@bp.get("/url/<id:link_id>")
@operation(
    "links:read",
    "links.get",
    shapes.with_message("", _READ, "shorturl", "short"),
    query=STATISTICS,
    has_etag=True,
    restricted=("own_only", "domains"),
)
def read(link_id: int) -> Response:
    """Read a link.

    All that is stored of one link, with its statistics since its creation. For the clicks of a
    period, use `GET /api/stats`, and to find a link by its short URL `GET /api/urls?short=summer`.
    """
    link = link_records.read_from_replica(user_id(), link_id, statistics=wants_statistics())
    return versioned(link["version"], **_single(link))


@bp.post("/url/add")
@operation(
    "links:create",
    "links.create",
    _CREATED,
    body=Link.creates(),
    example=_NEW,
    errors=("plan_limit", *_ERRORS),
    has_etag=True,
    restricted=("own_only", "domains"),
)
def add(new: Row) -> Response:
    """Add a link.

    Use it for a new short URL. To give an existing one another target, use
    `PUT /api/url/{link_id}/update`: its short URL and its statistics stay.
    """
    link = create_link(user_id(), new)
    if not link["is_new"]:
        warn(EXISTING)
    response = _written(None, link, "set")
    if (key := caller().key) and not scopes.has(key, "links:read"):  # it may be an older one of the same URL
        response.set_data(orjson.dumps(ok(**_short(link))))
    return response


@bp.put("/url/<id:link_id>/update")
@operation(
    "links:write",
    "links.update",
    shapes.with_message("Link has been updated successfully.", _READ),
    body=Link.updates(),
    stored=links.read,
    example={"url": "https://example.com/winter", "metatitle": "Winter sale"},
    errors=_ERRORS,
    row="links",
    has_etag=True,
    restricted=("own_only", "domains"),
)
def update(changes: Row, link_id: int) -> Response:
    """Change a link.

    Only the members that are sent change; an array, such as `rules`, is replaced. The short URL
    stays, unless `custom` or `domain` is sent. To end a link but keep its statistics, send
    `expiry`.
    """
    return _written("Link has been updated successfully.", change_link(user_id(), link_id, changes))


def _checked(externalid: str) -> str:
    return str(load(Link.updates(), {"externalid": externalid})["externalid"])


@bp.put("/url/external/<externalid>")
@operation(
    "links:write",
    "links.put",
    _CREATED,
    body=Link.creates(),
    path={"externalid": Parameter("The `externalid` of the link.", examples=["invoice-9"])},
    example={"url": "https://example.com/winter", "title": "Winter sale"},
    errors=("plan_limit", *_ERRORS),
    row="links",
    row_id=lambda user_id, externalid: links.id_of_externalid(user_id, _checked(externalid)),
    has_etag=True,
    restricted=("own_only", "domains"),
)
def put(externalid: str) -> Response:
    """Create or change a link by its external id.

    Without a link of this `externalid` outside the bin, it creates one. Otherwise the members that
    are sent change, as by `PUT /api/url/{link_id}/update`: without `domain`, the link's own decides
    what `custom` can be. `is_new` says which. Of several requests at once, one creates the link.
    """
    own, sent = {"externalid": _checked(externalid)}, parse()
    load(Link.creates(), {"url": sent.get("url"), "domain": ""})  # a change needs a URL too
    if (sent.get("externalid") or externalid) != externalid:
        raise invalid("externalid must be the one of the path")
    link = links.put(user_id(), externalid, lambda: _create(own), lambda link_id: _change(link_id, own))
    return _written(None, link, "set" if link["is_new"] else "changed")


def _create(own: Row) -> Row:
    if "If-Match" in request.headers:  # which a link that does not exist never matches
        raise AppError("changed_meanwhile")
    return create_link(user_id(), load(Link.creates(), parse() | own))


def _change(link_id: int, own: Row) -> Row:
    current().warnings = ()  # of a create that came too late
    changes = changes_of(Link.updates(), lambda: links.read(user_id(), link_id))
    return change_link(user_id(), link_id, changes | own)


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

    Without `bin=1` this is final, also for a link in the bin. Visitors then get a 404. To show them
    something else, send an `expiredurl` and an `expiry` to `PUT /api/url/{link_id}/update` instead.
    """
    delete_link = link_bin.put if values_of(TO_BIN)["bin"] == "1" else links.delete
    delete_link(user_id(), link_id)
    return ok("Link has been deleted successfully.")


@bp.post("/url/<id:link_id>/restore")
@operation(
    "links:write",
    "links.restore",
    shapes.with_message("Link has been restored successfully.", _READ),
    errors=("plan_limit", "plan_feature", "target_blocked"),
    has_etag=True,
    restricted=("own_only", "domains"),
)
def restore(link_id: int) -> Response:
    """Restore a link from the bin.

    `GET /api/urls?bin=1` lists these links. It has its id, alias, statistics and channels as
    before, without rows that were deleted meanwhile, such as its campaign. An `externalid` that
    another link has now is lost, with a warning. A new link of the same URL does not return it.
    """
    warn_lost_externalids(link_bin.restore(user_id(), link_id)["lost"])
    return _written("Link has been restored successfully.", links.read(user_id(), link_id))


@bp.post("/url/<id:link_id>/try")
@operation(
    "links:read",
    "links.tryVisitor",
    shapes.success("LinkTried", data=TRIED),
    body=DescribedVisitor,
    example={"country": "France", "device": "iphone", "query": "ref=partner"},
    restricted=("own_only", "domains"),
    apart=True,
)
def try_visitor(described: Row, link_id: int) -> Json:
    """Try a link.

    The response says where a visitor would get, which rule matches, and why those before it do not.
    No member is required. Nothing is changed or counted. Passwords and pages before the target are
    left out.
    """
    return ok(data=try_link(user_id(), link_id, described))
