"""Demonstration data of `make dev`: an administrator, and a user with sample data."""

from contextlib import suppress
from typing import Any

import psycopg2

from linkmgr.core import keys
from linkmgr.core.database.statements import rows
from linkmgr.core.errors import AppError
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.resource import Stored
from linkmgr.core.settings import settings
from linkmgr.features.conversions import repository as conversions
from linkmgr.features.scoped_keys.schema import KEYS
from linkmgr.features.utm.schema import UTM_TEMPLATES
from linkmgr.repository import account, channels, overlay, plans, users
from linkmgr.schemas.bio import BIO_PAGES
from linkmgr.schemas.campaigns import CAMPAIGNS
from linkmgr.schemas.channels import CHANNELS
from linkmgr.schemas.domains import Domain, add_checked_domain
from linkmgr.schemas.links import LINKS
from linkmgr.schemas.overlay import OVERLAYS
from linkmgr.schemas.pixels import PIXELS
from linkmgr.schemas.qr import QR_CODES
from linkmgr.schemas.splash import SPLASH_PAGES
from linkmgr.schemas.users import register
from linkmgr.visits import demo as demo_visits

ADMIN, DEMO = "admin", "demo"
BIO = "dana-demo"  # alias of the bio page
_SITE, _SHOP = "https://www.postgresql.org", "https://example.com/"
# By the alias of the link that shows it
_OVERLAYS = {
    "demo-news": {
        "type": "newsletter",
        "name": "Subscribe to our newsletter",
        "message": "What we bake next week, every Friday.",
    },
    "demo-talk": {
        "type": "contact",
        "name": "Talk to us",
        "message": "A question, a cake, a complaint? We answer within a day.",
        "position": "right",
        "background": "#14532d",
    },
    "demo-poll": {
        "type": "poll",
        "name": "Which bread?",
        "message": "Which bread should we bake next?\nRye\nSpelt\nSourdough",
        "position": "left",
        "background": "#7c2d12",
    },
    "demo-coupon": {
        "type": "coupon",
        "name": "Ten percent off",
        "message": "Ten percent off your first loaf:",
        "label": "RYE-10",
        "position": "top",
        "color": "#3b1747",
        "background": "#fde2f3",
    },
    "demo-hint": {
        "type": "message",
        "name": "New shop",
        "message": "Our new shop is open.",
        "label": "Have a look",
        "link": _SHOP,
    },
}
_BIO_PAGE = {
    "name": "Dana Demo",
    "bio": "Baker, runner, and keeper of three sourdoughs.\nEverything here is made up: click through it!",
    "theme": "sunset",
}
# The titles of the links of the bio page, by path
_BIO_LINKS = {
    "about-pg": "A link with tracking pixels",
    "pg-docs": "A link with targets by device, country and language",
    "pg-download": "A splash page",
    "demo-news": "A newsletter",
    "demo-talk": "A contact form",
    "demo-poll": "A poll",
    "demo-coupon": "A coupon",
    "demo-hint": "A message",
    "r/spring": "One of the links of a campaign",
}
_VCARD = {
    "fname": "Dana",
    "lname": "Demo",
    "org": "Demo Ltd",
    "email": "dana@example.com",
    "site": "example.com",
}
_WIFI = {"ssid": "Demo guests", "password": "welcome-2026"}
_POSTER = {"background": "rgb(255,247,237)", "foreground": "rgb(124,45,18)"}
_CARD = {"background": "rgb(239,246,255)", "foreground": "rgb(30,58,138)"}
_CODES: list[dict[str, Any]] = [
    {"type": "text", "data": "Hello from linkmgr", "name": "Greeting"},
    {"type": "link", "data": f"{_SITE}/about/", "name": "Poster", **_POSTER},
    {"type": "vcard", "data": _VCARD, "name": "Business card", **_CARD},
    {"type": "wifi", "data": _WIFI, "name": "Guest network"},
]


def _user(name: str, *, admin: bool = False, plan: str | None = None) -> int:
    with suppress(AppError):
        return users.find_id(name)
    plan_ids = {row["name"]: row["id"] for row in plans.all_plans() if not row["free"]}
    members = {"username": name, "email": f"{name}@example.com", "password": keys.new_token()}
    return int(register(members | {"planid": plan_ids.get(plan)}, admin=admin)["id"])


def _sell(user_id: int) -> None:
    """Let some of the visitors of links buy bread."""
    visits = rows(
        """
        SELECT v.tracked_id AS link, v.at::text AS click
          FROM links l JOIN visits v ON v.tracked_id = l.id
         WHERE l.user_id = %(user_id)s AND NOT v.bot
         ORDER BY v.at DESC
        """,
        user_id=user_id,
    )
    sale = {"event": "sale", "currency": "EUR", "source": "key", "problem": ""}
    sold = [
        sale | visit | {"at": visit["click"], "order_id": f"B-{1000 + number}", "value": 4.5 + number % 7}
        for number, visit in enumerate(visits[::40])
    ]
    conversions.add(user_id, sold, is_restored=True)


def _add_rows(user_id: int) -> None:
    def add(stored: Stored, **body: Any) -> int:
        return stored.add(user_id, body)

    domain = {"domain": "https://go.example.com", "redirectroot": _SHOP}
    add_checked_domain(user_id, load(Domain.creates(), domain), is_checked=False)
    add(KEYS, name="Newsletter", scopes=["links:create", "stats:read"])
    pixels = [
        add(PIXELS, type="gapixel", name="Shop", tag="UA-12345678-1"),
        add(PIXELS, type="fbpixel", name="Spring campaign", tag="1234567890"),
    ]
    add(UTM_TEMPLATES, name="Newsletter", utm_source="newsletter", utm_medium="email", utm_campaign="spring")
    spring = add(CAMPAIGNS, name="Spring", slug="spring", public=True)
    add(CAMPAIGNS, name="Draft")
    shelf = add(CHANNELS, name="Favorites", color="#f97316", description="What we show first", starred=True)
    add(CHANNELS, name="Archive", color="#64748b")
    splash = add(
        SPLASH_PAGES,
        name="One moment",
        title="A word from our bakery",
        message="The rye bread is back, from Thursday to Saturday.\nYou will be redirected in a moment.",
        link=_SHOP,
        counter=10,
    )
    on_shelf = {"channel": [shelf]}
    in_spring = on_shelf | {"campaign": spring}
    add(
        LINKS,
        custom="about-pg",
        url=f"{_SITE}/about/",
        metatitle="About PostgreSQL",
        pixels=pixels,
        **in_spring,
    )
    add(LINKS, custom="pg-news", url=f"{_SITE}/about/newsarchive/", **in_spring)
    add(
        LINKS,
        custom="pg-docs",
        url=f"{_SITE}/docs/",
        metatitle="The manual",
        devicetarget=[{"device": name, "link": f"{_SITE}/download/"} for name in ("android", "iphone")],
        geotarget=[
            {"location": "Germany", "link": f"{_SITE}/community/"},
            {"location": "France", "link": "https://www.postgresql.fr/"},
        ],
        languagetarget=[{"language": "Japanese", "link": "https://www.postgresql.jp/"}],
        parameters=[{"name": "utm_source", "value": "demo"}],
        **in_spring,
    )
    add(LINKS, custom="pg-download", url=f"{_SITE}/download/", type=splash, **on_shelf)
    for alias, members in _OVERLAYS.items():
        overlay_id = add(OVERLAYS, **members)
        add(LINKS, custom=alias, url=_SHOP, type=f"overlay-{overlay_id}", **on_shelf)
        if members["type"] == "newsletter":
            overlay.add_answer(user_id, overlay_id, answer='{"email": "robin@example.com"}')
    links = [{"title": title, "url": f"{settings().base_url}/{path}"} for path, title in _BIO_LINKS.items()]
    channels.assign(user_id, shelf, add(BIO_PAGES, alias=BIO, links=links, **_BIO_PAGE), type="bio")
    for code in _CODES:
        channels.assign(user_id, shelf, add(QR_CODES, **code), type="qr")
    demo_visits.add(user_id)
    _sell(user_id)


def seed(*, with_demo: bool) -> dict[str, str]:
    ids = {ADMIN: _user(ADMIN, admin=True)}
    if with_demo:
        ids[DEMO] = _user(DEMO, plan="Pro")
        # The user never had any rows: counters of deleted ones are kept
        if not account.overview(ids[DEMO])["used"]:
            # After an earlier `demo` was deleted, another user may have taken one of its aliases.
            with suppress(psycopg2.errors.UniqueViolation):
                _add_rows(ids[DEMO])
    return {name: users.read(user_id)["apikey"] for name, user_id in ids.items()}
