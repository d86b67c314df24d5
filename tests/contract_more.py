"""What clients use besides the specification's tables: single reads, splash pages, overlays and bio pages."""

from linkmgr.api.bio import THEMES
from linkmgr.api.overlay import POSITIONS, TYPES
from tests.contract import (
    ACCOUNT,
    CAMPAIGN,
    CREATED,
    DOMAIN,
    PIXEL,
    Operation,
    done,
    listing,
    one_of,
    own_url,
    timestamp,
    url_or_empty,
)

SPLASH = {
    "id": int,
    "name": str,
    "title": str,
    "message": str,
    "link": url_or_empty,
    "counter": int,
    "banner": url_or_empty,
    "date": timestamp,
}
OVERLAY = {
    "id": int,
    "type": one_of(*TYPES),
    "name": str,
    "message": str,
    "link": url_or_empty,
    "label": str,
    "position": one_of(*POSITIONS),
    "color": str,
    "background": str,
    "date": timestamp,
}
ANSWER = {"id": int, "answer": {"email": str}, "date": timestamp}
BIO = {"id": int, "name": str, "alias": str, "shorturl": own_url, "date": timestamp}
# The contract's stage has a page without links; the links of a page are tested in tests/test_bio.py.
BIO_PAGE = BIO | {"bio": str, "theme": one_of(*THEMES), "links": list}

SHOP = "https://example.org/shop"
SPLASH_MEMBERS = {
    "title": "One moment",
    "message": "Two\nlines",
    "link": SHOP,
    "counter": 10,
    "banner": "https://example.org/banner.png",
}
OVERLAY_MEMBERS = {
    "message": "Two\nlines",
    "link": SHOP,
    "label": "Go",
    "position": "top",
    "color": "#fff",
    "background": "#112233",
}
BIO_MEMBERS = {"alias": "my-page", "bio": "Two\nlines", "theme": "dark", "links": [{"title": "Shop", "url": SHOP}]}

OPERATIONS = [
    Operation("POST", "/api/account", {"error": 0, "data": ACCOUNT}, optional={"ignored": 1}),
    Operation("GET", "/api/domain/{domain}", {"error": 0, "data": DOMAIN}),
    Operation("GET", "/api/pixel/{pixel}", {"error": 0, "data": PIXEL}),
    Operation("GET", "/api/campaign/{campaign}", {"error": 0, "data": CAMPAIGN | {"name": str}}),
    Operation("GET", "/api/splash/{splash}", {"error": 0, "data": SPLASH}),
    Operation(
        "POST", "/api/splash/add", CREATED,
        {"name": "Launch"}, optional=SPLASH_MEMBERS, wrong={"counter": 0},
    ),
    Operation(
        "PUT", "/api/splash/{splash}/update", done("Splash page has been updated successfully."),
        optional={"name": "Launched"} | SPLASH_MEMBERS, wrong={"link": "javascript:alert(1)"},
    ),
    Operation("DELETE", "/api/splash/{splash}/delete", done("Splash page has been deleted successfully.")),
    Operation("GET", "/api/overlay/{overlay}", {"error": 0, "data": OVERLAY}),
    Operation("GET", "/api/overlay/{overlay}/answers", listing("answers", ANSWER)),
    Operation(
        "POST", "/api/overlay/add", CREATED,
        {"type": "message", "name": "Sale"}, optional=OVERLAY_MEMBERS, wrong={"type": "unknown"},
    ),
    Operation(
        "PUT", "/api/overlay/{overlay}/update", done("Overlay has been updated successfully."),
        optional={"type": "coupon", "name": "Sold"} | OVERLAY_MEMBERS, wrong={"color": "red"},
    ),
    Operation("DELETE", "/api/overlay/{overlay}/delete", done("Overlay has been deleted successfully.")),
    Operation("GET", "/api/bio", listing("bios", BIO)),
    Operation("GET", "/api/bio/{bio}", {"error": 0, "data": BIO_PAGE}),
    Operation(
        "POST", "/api/bio/add", CREATED | {"alias": str, "shorturl": own_url},
        {"name": "Dana"}, optional=BIO_MEMBERS, wrong={"theme": "unknown"},
    ),
    Operation(
        "PUT", "/api/bio/{bio}/update", done("Bio page has been updated successfully."),
        optional={"name": "Dana"} | BIO_MEMBERS, wrong={"alias": "a b"},
    ),
    Operation("DELETE", "/api/bio/{bio}/delete", done("Bio page has been deleted successfully.")),
]  # fmt: skip
