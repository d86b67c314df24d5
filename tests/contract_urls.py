"""The links operations, as clients of the API that this one comes from expect them."""

from typing import Any

from tests.contract import STATISTICS, Operation, done, listing, own_url, timestamp, timestamp_or_null, url


def integer_or_null(value: Any) -> bool:
    return value is None or type(value) is int


def integers(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int for each in value)


def urls_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(name == name.lower() and url(value[name]) for name in value)


LINK = {
    "id": int,
    "alias": str,
    "shorturl": own_url,
    "longurl": url,
    "title": str,
    "description": str,
    "date": timestamp,
}
LISTED = LINK | {"clicks": int, "uniqueclicks": int, "domain": url, "campaign": integer_or_null, "channel": integers}
DETAILS = LINK | {"location": urls_by_name, "device": urls_by_name, "expiry": timestamp_or_null}
ANSWER = {"error": 0, "id": int, "shorturl": own_url, "short": own_url}

OPTIONAL = {
    "custom": "contract",
    "password": "secret",
    "expiry": "2030-12-31 23:59:59",
    "type": "frame",
    "geotarget": [{"location": "Canada", "link": "https://example.ca/"}],
    "devicetarget": [{"device": "iPhone", "link": "https://example.com/iphone"}],
    "languagetarget": [{"language": "fr", "link": "https://example.com/fr"}],
    "parameters": [{"name": "aff", "value": "3"}],
    "metatitle": "Title",
    "metadescription": "What it is",
    "metaimage": "https://example.com/image.png",
    "description": "For the newsletter",
    "deeplink": {"auto": True, "apple": "https://apps.apple.com/app/id1", "google": "https://play.google.com/store"},
    "status": "private",
}

OPERATIONS = [
    Operation("GET", "/api/urls", listing("urls", LISTED)),
    Operation("GET", "/api/url/{link}", {"error": 0, "id": int, "details": DETAILS, "data": STATISTICS}),
    Operation(
        "POST", "/api/url/add", ANSWER,
        {"url": "https://example.com/contract"}, optional=OPTIONAL, wrong={"url": "javascript:alert(1)"},
    ),
    Operation(
        "PUT", "/api/url/{link}/update", done("Link has been updated successfully.") | ANSWER,
        optional={"url": "https://example.com/new"} | OPTIONAL, wrong={"custom": "a b"},
    ),
    Operation("DELETE", "/api/url/{link}/delete", done("Link has been deleted successfully.")),
]  # fmt: skip
