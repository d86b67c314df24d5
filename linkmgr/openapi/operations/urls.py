"""/api/urls and /api/url, and /api/urls/bulk and /api/qr/bulk"""

from marshmallow import Schema

from linkmgr.api import bulk, urls
from linkmgr.fields.bulk import MAX_ELEMENTS
from linkmgr.fields.member import JsonSchema
from linkmgr.fields.query import PAGING
from linkmgr.openapi.model import Operation, listed, prose
from linkmgr.openapi.operations.stats import visits_of
from linkmgr.openapi.usual import section
from linkmgr.resources import shapes as js
from linkmgr.resources.shapes import records_of
from linkmgr.resources.urls import Link

_SHORT: dict[str, JsonSchema] = {"id": js.ID, "shorturl": js.own_url("summer"), "short": js.own_url("summer")}
_CODES = (
    "plan_feature", "alias_taken", "alias_reserved", "link_branded", "domain_unknown", "domain_in_use",
    "campaign_unknown", "splash_unknown", "overlay_unknown", "pixel_unknown", "channel_unknown", "domain_needed",
    "password_busy",
)  # fmt: skip

_LIST = js.success(
    data={
        "allOf": [
            js.ref("Page"),
            js.record(urls=js.array_of(js.ref("LinkListed"))),
            js.record(**js.STATISTICS["properties"]) | {"required": [], "description": "With `short` only."},
        ]
    },
    id=js.ID | {"description": "With `short` only."},
    details=js.ref("Link"),
    code=js.text("short_url_unknown", description="If no link has this `short`, with the `message`, and `error` 1."),
    message="You have no link with this short URL.",
) | {"required": ["error"]}
_LIST["properties"]["error"] = js.number(0)
_LIST["examples"] = [js.example_of(js.listing("urls", "LinkListed"), js.RECORDS | records_of(Link))]

_RECORD = {"details": js.ref("Link"), "data": js.ref("Statistics")}

SECTION = section(
    Link,
    "Links",
    word="links",
    example={
        "url": "https://example.com/sale",
        "custom": "summer",
        "expiry": "2030-12-31 23:59:59",
        "geotarget": [{"location": "Germany", "link": "https://example.de/sale"}],
        "parameters": [{"name": "utm_source", "value": "newsletter"}],
    },
    change={"url": "https://example.com/winter", "metatitle": "Winter sale"},
    codes=_CODES,
    added=("plan_limit",),
    responses={
        "read": js.success(id=js.ID, **_RECORD),
        "add": js.success(**_SHORT, **_RECORD) | {"required": ["error", *_SHORT]},
        "update": js.success(message="Link has been updated successfully.", **_SHORT, **_RECORD),
    },
    others=(
        Operation(
            "GET /api/urls", "List links", _LIST, query=urls.QUERY | PAGING, codes=("address_too_long", "search_busy")
        ),
        visits_of("/api/url/{link_id}/visits", "link"),
    ),
)

_INDEX = js.number(0) | {"description": "The position of the element in the request, from 0."}
_FAILURE = js.record(
    index=_INDEX,
    error={"type": "integer", "enum": [1]},
    code="alias_taken",
    message="This alias is already in use. Choose another one.",
    errors=js.ERRORS,
) | {"required": ["index", "error", "code", "message"]}


def _operation(route: str, summary: str, body: type[Schema], done: str, **members: JsonSchema) -> Operation:
    """Return the operation whose response has the results of all elements. `done` is the name of their number, and
    `members` are those of an element that succeeds."""
    made = js.record(index=_INDEX, id=js.ID, **members)
    result = _FAILURE | {"properties": made["properties"] | _FAILURE["properties"], "required": ["index"]}
    result["examples"] = [js.example_of(made, {})]
    response = js.success(**{done: 1000, "failed": 0}, results=js.array_of(result))
    is_update = route.startswith("PUT")
    codes = [
        "bulk_refused",
        "bulk_too_large",
        "rows_limited",
        "password_busy",
        *(["etag_invalid"] if is_update else ()),
    ]
    return Operation(route, summary, response, body, codes=(*codes,), many=is_update)


BULK = listed(
    "bulk",
    "Bulk",
    description=prose("bulk", bulk=bulk, rows=MAX_ELEMENTS),
    records=lambda: {"BulkFailure": _FAILURE},
    operations=(
        _operation(
            "POST /api/urls/bulk", "Shorten many URLs", bulk.LinksCreate, "created", shorturl=js.own_url("autumn")
        ),
        _operation(
            "PUT /api/urls/bulk", "Change many links", bulk.LinksUpdate, "updated", shorturl=js.own_url("autumn")
        ),
        _operation("POST /api/urls/bulk/delete", "Delete many links", bulk.LinkIds, "deleted"),
        _operation(
            "POST /api/qr/bulk", "Create many QR codes", bulk.QrCodesCreate, "created", link=js.own_url("qr/xkcd1234")
        ),
    ),
)
