"""/api/urls and /api/url"""

from linkmgr.api import urls
from linkmgr.fields.urls import MAX_URL
from linkmgr.openapi.model import PAGING, Member, Operation, Resource, parameter
from linkmgr.openapi.operations.stats import visits_of
from linkmgr.openapi.schemas import (
    ID,
    RECORDS,
    STATISTICS,
    TIMESTAMP,
    JsonSchema,
    array_of,
    choice,
    done,
    example_of,
    flag,
    listing,
    map_of,
    number,
    or_null,
    own_url,
    record,
    ref,
    success,
    text,
    url,
    url_or_empty,
)

_LINK: dict[str, JsonSchema] = {
    "id": ID,
    "alias": text("summer"),
    "shorturl": own_url("summer"),
    "longurl": url("https://example.com/sale"),
    "title": text("Summer sale"),
    "description": text("For the newsletter"),
    "date": TIMESTAMP,
}
_TARGET = url("https://example.com/app")
MEMBERS: dict[str, JsonSchema] = {  # of the body, in the form in which they are sent
    "url": url("https://example.com/sale"),
    "custom": text("summer") | {"description": 'The alias, or `""` if the service generated it.'},
    "domain": url("https://go.example.org"),
    "haspassword": flag(False),
    "type": {
        "anyOf": [{"type": "string", "pattern": "^(?:direct|frame|splash|overlay-[0-9]+)$"}, ID],
        "examples": ["overlay-17"],
    },
    "geotarget": array_of(record(location=text("germany"), link=_TARGET)),
    "devicetarget": array_of(record(device=text("iphone"), link=_TARGET)),
    "languagetarget": array_of(record(language=text("fr"), link=_TARGET)),
    "parameters": array_of(record(name=text("utm_source"), value=text("newsletter"))),
    "metatitle": text("Summer sale"),
    "metadescription": text("Everything must go."),
    "metaimage": url_or_empty("https://example.com/sale.png"),
    "pixels": array_of(ID) | {"examples": [[17]]},
    "campaign": or_null(ID),
    "channel": array_of(ID) | {"examples": [[17]]},
    "deeplink": {
        "type": "object",
        "properties": {"auto": flag(True), "apple": _TARGET, "google": _TARGET},
    },
    "status": choice("public", "private"),
}
_SHORT: dict[str, JsonSchema] = {"id": ID, "shorturl": own_url("summer"), "short": own_url("summer")}
_CODES = (
    "plan_feature", "alias_taken", "link_branded", "domain_unknown", "domain_in_use", "campaign_unknown",
    "splash_unknown", "overlay_unknown", "pixel_unknown", "channel_unknown", "domain_needed",
)  # fmt: skip

_LOOKUP = """\
With `short`, the response is the one of `GET /api/url/{link_id}`: `id`, `details`, and the statistics in `data`. In
addition, `data` has the members of a list, with the link in `urls`. If you have no link with this short URL, the
response has the status 200, `error` 1, the code `short_url_unknown` and no `data`."""
_LISTED = record(
    **_LINK,
    clicks=number(12),
    uniqueclicks=number(9),
    domain=url("https://go.example.org"),
    campaign=or_null(ID),
    channel=array_of(ID) | {"examples": [[17]]},
)
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
    message=text("You have no link with this short URL."),
) | {"required": ["error"]}
_LIST["properties"]["error"] = number(0)
_LIST["examples"] = [example_of(listing("urls", "LinkListed"), RECORDS | {"LinkListed": _LISTED})]

RESOURCE = Resource(
    name="Links",
    description="""\
A visitor is redirected to the first target that matches: by device, then by country, then by language, then `url`. The
`parameters` are added to any of them. The redirect is a 302, or a 303 after the form for the `password` of the link.

Targets must be `http` or `https` URLs, and neither on this service nor on a branded domain. If a later change causes a
redirect loop anyway, visitors get an error page with the status 508. Elements of `geotarget`, `devicetarget`,
`languagetarget`, `parameters` and `pixels` that do not have the form below are ignored.

Without other members, or with default values only, a `url` that you have already shortened returns the existing link.

In `details`, `location` and `device` are `geotarget` and `devicetarget` as objects. `haspassword` is true if the
link has a password. `custom` is `""` if the service generated the alias. `imported_clicks` is the number of clicks that
another service counted before an import, or `null`; no statistics include it.

`short` and `shorturl` are the same. `longurl` is the target, `title` is the `metatitle`, and `domain` is the scheme
and host of the short URL.""",
    members={
        "url": Member("https://example.com/sale", "The target."),
        "custom": Member(
            "summer",
            "The alias: the last part of the short URL. It is case-sensitive, unique on its domain, and not a "
            "reserved word such as `login`. Without it, the service generates 8 characters.",
        ),
        "domain": Member("https://go.example.com", 'The domain of the short URL. `""` means this service.'),
        "password": Member("correct horse", "Visitors must enter this password on every visit."),
        "expiry": Member("2030-12-31 23:59:59", "The link stops working at this time."),
        "type": Member(
            "overlay-17",
            "How the target is shown: `direct` redirects to it, `frame` shows it in a frame, `splash` shows a splash "
            "page first, the id of one of your splash pages shows that one, and `overlay-<id>` shows the target below "
            "one of your CTA overlays.",
            "direct",
        ),
        "geotarget": Member(
            [{"location": "Germany", "link": "https://example.de/sale"}], "Targets by the visitor's country."
        ),
        "devicetarget": Member(
            [{"device": "iphone", "link": "https://example.com/iphone"}], "Targets by the visitor's device."
        ),
        "languagetarget": Member(
            [{"language": "fr", "link": "https://example.com/fr"}], "Targets by the language of the visitor's browser."
        ),
        "parameters": Member(
            [{"name": "utm_source", "value": "newsletter"}],
            f"Added to the query of the target. Together they must make at most {MAX_URL} characters.",
        ),
        "metatitle": Member("Summer sale", "The title in previews on social networks."),
        "metadescription": Member("Everything must go.", "The text in previews."),
        "metaimage": Member("https://example.com/sale.png", "The image in previews."),
        "description": Member("For the newsletter", "A note for yourself."),
        "pixels": Member([17], "The ids of your pixels that fire on a visit. An update replaces all of them."),
        "campaign": Member(17, "The id of the campaign that the link is in. `0` removes the link from its campaign."),
        "channel": Member(
            [17],
            "The ids of channels that the link is added to, or one id. It stays in its other channels. `0` and `[]` "
            "change nothing.",
        ),
        "deeplink": Member(
            {"auto": True, "apple": "https://apps.apple.com/app/id1", "google": "https://play.google.com/store"},
            "Opens an app on phones.",
        ),
        "status": Member("private", "`private` hides the link in the public list of its campaign.", "public"),
    },
    records={
        "LinkListed": _LISTED,
        "Link": record(
            **_LINK,
            location=map_of(url("https://example.de/"), "germany"),
            device=map_of(url("https://example.com/app"), "iphone"),
            expiry=or_null(TIMESTAMP),
            imported_clicks=or_null(number(1204)),
            **MEMBERS,
        ),
    },
    operations=(
        Operation(
            "GET",
            "/api/urls",
            "List links",
            _LIST,
            codes=("address_too_long",),
            description=_LOOKUP,
            query=(
                parameter(
                    "order",
                    "`click` lists the most clicked links first, without `next` and `after`. Any other value means "
                    "`date`: newest first.",
                    type="string",
                    maxLength=255,
                    default="date",
                    examples=["click"],
                ),
                parameter("q", "A part of the URL, the alias or the title.", type="string", maxLength=MAX_URL),
                parameter("alias", "The alias of one link, as with `short`.", type="string", examples=["summer"]),
                parameter("domain", "The branded domain of `alias`.", type="string", maxLength=MAX_URL),
                parameter(
                    "short",
                    "The short URL of one link. The scheme can be omitted, and for this service also the host.",
                    type="string",
                    maxLength=MAX_URL,
                    examples=["https://go.example.org/summer"],
                ),
                *PAGING,
            ),
        ),
        Operation(
            "GET",
            "/api/url/{link_id}",
            "Read a link and its statistics",
            success(id=ID, details=ref("Link"), data=ref("Statistics")),
            tagged=True,
        ),
        visits_of("/api/url/{link_id}/visits", "link"),
        Operation(
            "POST",
            "/api/url/add",
            "Shorten a URL",
            success(**_SHORT),
            urls.LinkCreate,
            {
                "url": "https://example.com/sale",
                "custom": "summer",
                "expiry": "2030-12-31 23:59:59",
                "geotarget": [{"location": "Germany", "link": "https://example.de/sale"}],
                "parameters": [{"name": "utm_source", "value": "newsletter"}],
            },
            codes=(*_CODES, "plan_limit"),
        ),
        Operation(
            "PUT",
            "/api/url/{link_id}/update",
            "Change a link",
            success(
                message=text("Link has been updated successfully."),
                **_SHORT,
                details=ref("Link"),
                data=ref("Statistics"),
            ),
            urls.LinkUpdate,
            {"url": "https://example.com/winter", "metatitle": "Winter sale"},
            codes=_CODES,
            tagged=True,
        ),
        Operation("DELETE", "/api/url/{link_id}/delete", "Delete a link", done("Link has been deleted successfully.")),
    ),
)
