"""What is in successful answers: the specification's resources in JSON Schema, each member with an example.

Every answer that a test gets is compared with them (tests/conftest.py), so that they cannot drift.
"""

from typing import Any

from linkmgr.api.bio import THEMES
from linkmgr.api.overlay import POSITIONS
from linkmgr.api.overlay import TYPES as OVERLAY_TYPES
from linkmgr.api.pixels import TYPES as PIXEL_TYPES
from linkmgr.fields.base import LONGEST_ID
from linkmgr.fields.plan_limits import COUNTED, NUMBERS, SWITCHED
from linkmgr.repository.channels import ITEMS

JsonSchema = dict[str, Any]


def ref(name: str) -> JsonSchema:
    return {"$ref": f"#/components/schemas/{name}"}


def record(**members: JsonSchema) -> JsonSchema:
    """An object of exactly these members."""
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def _text(example: str, **limits: Any) -> JsonSchema:
    return {"type": "string", "examples": [example], **limits}


def _choice(*values: str) -> JsonSchema:
    return {"type": "string", "enum": list(values), "examples": [values[0]]}


def _or_null(schema: JsonSchema) -> JsonSchema:
    return schema | {"type": [schema["type"], "null"]}


def _number(example: int, least: int = 0) -> JsonSchema:
    return {"type": "integer", "minimum": least, "examples": [example]}


def _flag(example: bool) -> JsonSchema:
    return {"type": "boolean", "examples": [example]}


def _url(example: str) -> JsonSchema:
    return _text(example, pattern="^https?://")


def _url_or_empty(example: str) -> JsonSchema:
    return _text(example, pattern="^(?:$|https?://)")


def _ours(path: str) -> JsonSchema:
    return _url(f"https://go.example.org/{path}")


def _map(values: JsonSchema, label: str) -> JsonSchema:
    return {"type": "object", "additionalProperties": values, "examples": [{label: values["examples"][0]}]}


ID: JsonSchema = {"type": "integer", "minimum": 1, "maximum": LONGEST_ID, "examples": [17]}
_TIMESTAMP = _text("2026-11-21 09:30:00", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$")
_DAY = _text("2026-11-21", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
_COLOR = _text("#3b82f6", pattern="^#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$")
_COUNTS = _map(_text("12", pattern="^[0-9]+$"), "Germany")
_SWITCH = _choice("0", "1")
_ADDRESSES = {
    "rotator": {
        "anyOf": [_ours("r/summer"), {"type": "boolean", "enum": [False]}],
        "description": "false without a slug.",
        "examples": ["https://go.example.org/r/summer"],
    },
    "list": _ours("u/dana/summer-17"),
}
_MESSAGE = _text("Pixel has been updated successfully.")
_ACCOUNT = {
    "id": ID,
    "email": _text("dana@example.com"),
    "username": _text("dana"),
    "avatar": _ours("avatar/dana.png"),
    "status": _choice("pro", "free", "admin"),
    "expires": _or_null(_TIMESTAMP),
    "registered": _TIMESTAMP,
}
_LINK = {
    "id": ID,
    "alias": _text("summer"),
    "shorturl": _ours("summer"),
    "longurl": _url("https://example.com/sale"),
    "title": _text("Summer sale"),
    "description": _text("For the newsletter"),
    "date": _TIMESTAMP,
}
_BIO = {"id": ID, "name": _text("Dana"), "alias": _text("dana"), "shorturl": _ours("dana"), "date": _TIMESTAMP}

SHAPES: dict[str, JsonSchema] = {
    "Account": record(**_ACCOUNT),
    "User": record(**_ACCOUNT, planid=ID, apikey=_text("linkmgr_...")),
    "UserAdded": record(id=ID, email=_text("carol@example.com"), username=_text("carol")),
    "Domain": record(
        id=ID,
        domain=_url("https://go.example.com"),
        redirectroot=_url_or_empty("https://example.com/"),
        redirect404=_url_or_empty("https://example.com/missing"),
    ),
    "SplashPageListed": record(id=ID, name=_text("Launch"), date=_TIMESTAMP),
    "SplashPage": record(
        id=ID,
        name=_text("Launch"),
        title=_text("One moment"),
        message=_text("You are on your way."),
        link=_url_or_empty("https://example.com/"),
        counter=_number(5, 1),
        banner=_url_or_empty("https://example.com/banner.png"),
        date=_TIMESTAMP,
    ),
    "OverlayListed": record(id=ID, type=_choice(*OVERLAY_TYPES), name=_text("Sale"), date=_TIMESTAMP),
    "Overlay": record(
        id=ID,
        type=_choice(*OVERLAY_TYPES),
        name=_text("Sale"),
        message=_text("Everything must go."),
        link=_url_or_empty("https://example.com/sale"),
        label=_text("Have a look"),
        position=_choice(*POSITIONS),
        color=_COLOR,
        background=_COLOR,
        date=_TIMESTAMP,
    ),
    "OverlayAnswer": record(id=ID, answer=_map(_text("visitor@example.com"), "email"), date=_TIMESTAMP),
    "Pixel": record(id=ID, type=_choice(*PIXEL_TYPES), name=_text("Shop"), tag=_text("GTM-ABC123"), date=_TIMESTAMP),
    "QrCode": record(id=ID, link=_ours("qr/bcd234fgh567"), scans=_number(12), name=_text("Poster"), date=_TIMESTAMP),
    "Statistics": record(
        clicks=_number(12),
        uniqueClicks=_number(9),
        topCountries=_COUNTS,
        topReferrers=_COUNTS,
        topBrowsers=_COUNTS,
        topOs=_COUNTS,
        socialCount=record(facebook=_number(1), twitter=_number(0), instagram=_number(3)),
    ),
    "CampaignListed": record(id=ID, name=_text("Summer"), public=_flag(True), **_ADDRESSES),
    "Campaign": record(
        error=ref("Success"),
        id=ID,
        domain=_text("Summer", description="The name."),
        campaign=_text("Summer", description="The name."),
        public=_flag(True),
        **_ADDRESSES,
    ),
    "Channel": record(
        id=ID, name=_text("Reading"), description=_text("For the train"), color=_COLOR, starred=_flag(False)
    ),
    "ChannelItem": record(
        type=_choice(*ITEMS),
        id=ID,
        title=_text("Summer sale"),
        preview=_url("https://example.com/sale"),
        link=_ours("summer"),
        date=_DAY,
    ),
    "LinkListed": record(
        **_LINK,
        clicks=_number(12),
        uniqueclicks=_number(9),
        domain=_url("https://go.example.org"),
        campaign=_or_null(ID),
        channel={"type": "array", "items": ID, "examples": [[17]]},
    ),
    "Link": record(
        **_LINK,
        location=_map(_url("https://example.de/"), "germany"),
        device=_map(_url("https://example.com/app"), "iphone"),
        expiry=_or_null(_TIMESTAMP),
    ),
    "BioPageListed": record(**_BIO),
    "BioPage": record(
        **_BIO,
        bio=_text("I write."),
        theme=_choice(*THEMES),
        links={"type": "array", "items": record(title=_text("Shop"), url=_url("https://example.com/shop"))},
    ),
    "Plan": record(
        id=ID,
        name=_text("Pro"),
        free=_flag(False),
        prices={
            "type": ["object", "null"],
            "properties": {period: {"type": "number", "examples": [9]} for period in ("monthly", "yearly", "lifetime")},
            "required": ["monthly", "yearly", "lifetime"],
            "additionalProperties": False,
        },
        limits=record(
            **{name: _number(0) for name in NUMBERS},
            **{name: record(enabled=_SWITCH, count=_text("50", pattern="^[0-9]{1,9}$")) for name in COUNTED},
            **{name: record(enabled=_SWITCH) for name in SWITCHED},
        ),
    ),
    "Success": {"type": "integer", "enum": [0], "examples": [0]},
    "Done": record(error=ref("Success"), message=_MESSAGE),
    "Created": record(error=ref("Success"), id=ID),
}

# --- whole answers


def answer(**members: JsonSchema) -> JsonSchema:
    return record(error=ref("Success"), **members)


def listing(key: str, name: str) -> JsonSchema:
    return answer(
        data=record(
            result=_number(1) | {"description": "How many there are in all."},
            perpage=_number(15, 1),
            currentpage=_number(1, 1),
            nextpage=_number(0) | {"description": "0: there is none."},
            maxpage=_number(1, 1),
            **{key: {"type": "array", "items": ref(name)}},
        )
    )


def reading(name: str) -> JsonSchema:
    return answer(data=ref(name))


def all_of(name: str) -> JsonSchema:
    return answer(data={"type": "array", "items": ref(name)})


_SHORT = {"id": ID, "shorturl": _ours("summer"), "short": _ours("summer")}

DONE = ref("Done")
CREATED = ref("Created")
LINK_READ = answer(id=ID, details=ref("Link"), data=ref("Statistics"))
LINK_ADDED = answer(**_SHORT)
LINK_CHANGED = answer(message=_MESSAGE, **_SHORT)
BIO_ADDED = answer(id=ID, alias=_text("dana"), shorturl=_ours("dana"))
QR_READ = answer(details=ref("QrCode"), data=ref("Statistics"))
QR_ADDED = answer(id=ID, link=_ours("qr/bcd234fgh567"))
CHANNEL_ADDED = answer(**SHAPES["Channel"]["properties"])
USER_ADDED = answer(message=_MESSAGE, data=ref("UserAdded"))
LOGIN_LINK = answer(url=_ours("login/..."))
DOCUMENT: JsonSchema = {"type": "object"}
