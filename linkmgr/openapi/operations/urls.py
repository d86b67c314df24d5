"""/api/urls and /api/url"""

from linkmgr.api import urls
from linkmgr.fields.query import PAGING
from linkmgr.openapi.model import Operation
from linkmgr.openapi.operations.stats import visits_of
from linkmgr.openapi.schemas import (
    ID,
    RECORDS,
    STATISTICS,
    JsonSchema,
    array_of,
    example_of,
    listing,
    number,
    own_url,
    record,
    ref,
    success,
    text,
)
from linkmgr.openapi.usual import records_of, section
from linkmgr.resources.urls import Link

_SHORT: dict[str, JsonSchema] = {"id": ID, "shorturl": own_url("summer"), "short": own_url("summer")}
_CODES = (
    "plan_feature", "alias_taken", "link_branded", "domain_unknown", "domain_in_use", "campaign_unknown",
    "splash_unknown", "overlay_unknown", "pixel_unknown", "channel_unknown", "domain_needed",
)  # fmt: skip

_LOOKUP = """\
With `short`, the response is the one of `GET /api/url/{link_id}`: `id`, `details`, and the statistics in `data`. In
addition, `data` has the members of a list, with the link in `urls`. If you have no link with this short URL, the
response has the status 200, `error` 1, the code `short_url_unknown` and no `data`."""
_LIST = success(
    data={
        "allOf": [
            ref("Page"),
            record(urls=array_of(ref("LinkListed"))),
            record(**STATISTICS["properties"]) | {"required": [], "description": "With `short` only."},
        ]
    },
    id=ID | {"description": "With `short` only."},
    details=ref("Link"),
    code=text("short_url_unknown", description="If no link has this `short`, with the `message`, and `error` 1."),
    message="You have no link with this short URL.",
) | {"required": ["error"]}
_LIST["properties"]["error"] = number(0)
_LIST["examples"] = [example_of(listing("urls", "LinkListed"), RECORDS | records_of(Link))]

_RECORD = {"details": ref("Link"), "data": ref("Statistics")}

SECTION = section(
    Link,
    "Links",
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
        "read": success(id=ID, **_RECORD),
        "add": success(**_SHORT, **_RECORD) | {"required": ["error", *_SHORT]},
        "update": success(message="Link has been updated successfully.", **_SHORT, **_RECORD),
    },
    others=(
        Operation(
            "GET /api/urls",
            "List links",
            _LIST,
            query=urls.QUERY | PAGING,
            codes=("address_too_long",),
            description=_LOOKUP,
        ),
        visits_of("/api/url/{link_id}/visits", "link"),
    ),
)
