"""The specification's tables: the shape of each resource, and each operation with what it takes and answers."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from linkmgr.api.pixels import TYPES as PIXEL_TYPES
from linkmgr.fields.plan_limits import COUNTED, NUMBERS, SWITCHED
from tests.conftest import BASE_URL

Shape = Any


# --- shapes: a type, a pattern, a value, a list of one shape, or an object of them


def timestamp(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", value))


def day(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"\d{4}-\d\d-\d\d", value))


def url(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://"))


def own_url(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(f"{BASE_URL}/")


def timestamp_or_null(value: Any) -> bool:
    return value is None or timestamp(value)


def url_or_empty(value: Any) -> bool:
    return value == "" or url(value)


def own_url_or_false(value: Any) -> bool:
    return value is False or own_url(value)


def string_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(n, str) and n.isdigit() for n in value.values())


def one_of(*values: Any) -> Callable[[Any], bool]:
    return lambda value: value in values


def fits(value: Any, shape: Shape) -> bool:
    if isinstance(shape, dict):
        return isinstance(value, dict) and set(value) == set(shape) and all(fits(value[m], shape[m]) for m in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and bool(value) and all(fits(member, shape[0]) for member in value)
    if isinstance(shape, type):
        return type(value) is shape  # a boolean is not an integer here
    if callable(shape):
        return bool(shape(value))
    return bool(value == shape) and type(value) is type(shape)


ACCOUNT = {
    "id": int,
    "email": str,
    "username": str,
    "avatar": own_url,
    "status": one_of("free", "pro", "admin"),
    "expires": timestamp_or_null,
    "registered": timestamp,
}
USER = ACCOUNT | {"planid": int, "apikey": str}
DOMAIN = {"id": int, "domain": url, "redirectroot": url_or_empty, "redirect404": url_or_empty}
PIXEL = {"id": int, "type": one_of(*PIXEL_TYPES), "name": str, "tag": str, "date": timestamp}
CAMPAIGN = {"id": int, "public": bool, "rotator": own_url_or_false, "list": own_url}
QR = {"id": int, "link": own_url, "scans": int, "name": str, "date": timestamp}
STATISTICS = {
    "clicks": int,
    "uniqueClicks": int,
    "topCountries": string_counts,
    "topReferrers": string_counts,
    "topBrowsers": string_counts,
    "topOs": string_counts,
    "socialCount": {"facebook": int, "twitter": int, "instagram": int},
}
CHANNEL = {"id": int, "name": str, "description": str, "color": str, "starred": bool}
ITEM = {"type": one_of("links", "bio", "qr"), "id": int, "title": str, "preview": url, "link": own_url, "date": day}
COUNT = {"enabled": one_of("0", "1"), "count": str}
PLAN = {
    "id": int,
    "name": str,
    "free": bool,
    "prices": lambda prices: (
        prices is None
        or (
            set(prices) == {"monthly", "yearly", "lifetime"}
            and all(isinstance(price, int | float) for price in prices.values())
        )
    ),
    "limits": dict.fromkeys(NUMBERS, int)
    | dict.fromkeys(COUNTED, COUNT)
    | {name: {"enabled": one_of("0", "1")} for name in SWITCHED},
}


def listing(key: str, record: Shape) -> Shape:
    paging = {"result": int, "perpage": int, "currentpage": int, "nextpage": int, "maxpage": int}
    return {"error": 0, "data": paging | {key: [record]}}


def done(message: str) -> Shape:
    return {"error": 0, "message": message}


CREATED = {"error": 0, "id": int}
CAMPAIGN_ANSWER = {"error": 0, "domain": str, "campaign": str} | CAMPAIGN


# --- the operations


@dataclass(frozen=True)
class Operation:
    """A row of the tables; `path` holds the names of what must exist first."""

    method: str
    path: str
    answer: Shape
    body: dict[str, Any] = field(default_factory=dict)
    optional: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, Any] = field(default_factory=dict)
    administration: bool = False

    @property
    def rule(self) -> str:
        return re.sub(r"{\w+}", ":", self.path)


NEW_USER = {"username": "carol", "email": "carol@example.org", "password": "12345"}
COLOURS = {"background": "rgb(255,255,255)", "foreground": "rgb(0,0,0)"}
UNTIL = {"expiration": "2098-12-31 23:59:59"}
BRAND = {"redirectroot": "https://example.org/root", "redirect404": "https://example.org/404"}

OPERATIONS = [
    Operation("GET", "/api/account", {"error": 0, "data": ACCOUNT}),
    Operation(
        "PUT", "/api/account/update", done("Account has been successfully updated."),
        optional={"email": "new@example.org", "password": "54321"}, wrong={"email": "nobody"},
    ),
    Operation("GET", "/api/domains", listing("domains", DOMAIN)),
    Operation(
        "POST", "/api/domain/add", CREATED,
        {"domain": "https://brand.example.net"}, optional=BRAND, wrong={"domain": "brand.example.net"},
    ),
    Operation(
        "PUT", "/api/domain/{domain}/update", done("Domain has been updated successfully."),
        optional=BRAND, wrong={"redirectroot": "javascript:alert(1)"},
    ),
    Operation("DELETE", "/api/domain/{domain}/delete", done("Domain has been deleted successfully.")),
    Operation("GET", "/api/splash", listing("splash", {"id": int, "name": str, "date": timestamp})),
    Operation("GET", "/api/overlay", listing("cta", {"id": int, "type": str, "name": str, "date": timestamp})),
    Operation("GET", "/api/pixels", listing("pixels", PIXEL)),
    Operation(
        "POST", "/api/pixel/add", CREATED, {"type": "bing", "name": "Shop", "tag": "1"}, wrong={"type": "unknown"},
    ),
    Operation(
        "PUT", "/api/pixel/{pixel}/update", done("Pixel has been updated successfully."),
        {"tag": "2"}, optional={"name": "Store"}, wrong={"tag": "a b"},
    ),
    Operation("DELETE", "/api/pixel/{pixel}/delete", done("Pixel has been deleted successfully.")),
    Operation("GET", "/api/qr", listing("qrs", QR)),
    Operation("GET", "/api/qr/{qr}", {"error": 0, "details": QR, "data": STATISTICS}),
    Operation(
        "POST", "/api/qr/add", CREATED | {"link": own_url},
        {"type": "text", "data": "Hello"}, optional=COLOURS, wrong={"type": "unknown"},
    ),
    Operation(
        "PUT", "/api/qr/{qr}/update", done("QR has been updated successfully."),
        {"data": "Bye"}, optional=COLOURS, wrong={"background": "white"},
    ),
    Operation("DELETE", "/api/qr/{qr}/delete", done("QR Code has been deleted successfully.")),
    Operation("GET", "/api/campaigns", listing("campaigns", CAMPAIGN | {"name": str})),
    Operation(
        "POST", "/api/campaign/add", CAMPAIGN_ANSWER,
        optional={"name": "Summer", "slug": "summer", "public": True}, wrong={"public": "yes"},
    ),
    Operation(
        "POST", "/api/campaign/{campaign}/assign/{link}", done("Link successfully added to the campaign."),
    ),
    Operation(
        "PUT", "/api/campaign/{campaign}/update", CAMPAIGN_ANSWER,
        {"name": "Winter"}, optional={"slug": "winter", "public": False}, wrong={"name": 5},
    ),
    Operation("DELETE", "/api/campaign/{campaign}/delete", done("Campaign has been deleted successfully.")),
    Operation("GET", "/api/channels", listing("channels", CHANNEL)),
    Operation("GET", "/api/channel/{channel}", listing("items", ITEM)),
    Operation(
        "POST", "/api/channel/add", {"error": 0} | CHANNEL,
        {"name": "News"}, optional={"description": "d", "color": "#ff0000", "starred": True}, wrong={"color": "red"},
    ),
    Operation(
        "POST", "/api/channel/{channel}/assign/links/{link}", done("Item successfully added to the channel."),
    ),
    Operation("POST", "/api/channel/{channel}/assign/bio/{bio}", done("Item successfully added to the channel.")),
    Operation("POST", "/api/channel/{channel}/assign/qr/{qr}", done("Item successfully added to the channel.")),
    Operation(
        "PUT", "/api/channel/{channel}/update", done("Channel has been updated successfully."),
        optional={"name": "Olds", "description": "", "color": "#abc", "starred": False}, wrong={"starred": 1},
    ),
    Operation("DELETE", "/api/channel/{channel}/delete", done("Channel has been deleted successfully.")),
    Operation("GET", "/api/plans", {"error": 0, "data": [PLAN]}, administration=True),
    Operation(
        "PUT", "/api/plan/{plan}/user/{user}", done("User has been subscribed to this plan."),
        {"type": "yearly"}, optional=UNTIL, wrong={"type": "weekly"}, administration=True,
    ),
    Operation("GET", "/api/users", {"error": 0, "data": [USER]}, administration=True),
    Operation("GET", "/api/user/{user}", {"error": 0, "data": USER}, administration=True),
    Operation(
        "POST", "/api/user/add",
        done("User has been registered.") | {"data": {"id": int, "email": str, "username": str}},
        NEW_USER, optional=UNTIL, wrong={"password": "1234"}, administration=True,
    ),
    Operation("DELETE", "/api/user/{user}/delete", done("User has been deleted."), administration=True),
    Operation("GET", "/api/user/login/{user}", {"error": 0, "url": own_url}, administration=True),
]  # fmt: skip
