"""Demonstration data of `make dev`: an administrator, and a user with rows of every kind."""

import secrets
from contextlib import suppress
from typing import Any

import psycopg2

from linkmgr import keys
from linkmgr.errors import AppError
from linkmgr.fields import qr as qr_data
from linkmgr.fields.base import load
from linkmgr.repository import (
    account,
    campaigns,
    channels,
    demo_visits,
    overlay,
    plans,
    qr,
    urls,
    users,
)
from linkmgr.resources.bio import BioPage
from linkmgr.resources.campaigns import Campaign
from linkmgr.resources.channels import Channel
from linkmgr.resources.domains import Domain
from linkmgr.resources.keys import Key
from linkmgr.resources.overlay import Overlay
from linkmgr.resources.pixels import Pixel
from linkmgr.resources.splash import Splash
from linkmgr.settings import settings
from linkmgr.web import passwords

ADMIN, DEMO = "admin", "demo"
BIO = "dana-demo"  # alias of the bio page


def _user(name: str, *, admin: bool = False, plan: str | None = None) -> int:
    """Return the id of the user, who is added if missing."""
    with suppress(AppError):
        return users.find_id(name)
    plan_ids = {row["name"]: row["id"] for row in plans.all_plans() if not row["free"]}
    user_id = users.next_id()
    users.add(
        user_id,
        username=name,
        email=f"{name}@example.com",
        password_hash=passwords.hashed(secrets.token_urlsafe()),
        admin=admin,
        planid=plan_ids.get(plan),
        **keys.new_key(user_id),
    )
    return user_id


def _links(user_id: int, pixel_ids: list[int], splash_id: int, overlays: dict[str, int]) -> dict[str, int]:
    """Add a link of each kind, and return their ids by alias."""
    site, framed = "https://www.postgresql.org", "https://example.com/"
    kinds: dict[str, dict[str, Any]] = {
        "about-pg": {"url": f"{site}/about/", "metatitle": "About PostgreSQL", "pixels": pixel_ids},
        "pg-news": {"url": f"{site}/about/newsarchive/"},
        "pg-docs": {
            "url": f"{site}/docs/",
            "metatitle": "The manual",
            "devicetarget": {"android": f"{site}/download/", "iphone": f"{site}/download/"},
            "geotarget": {"germany": f"{site}/community/", "france": "https://www.postgresql.fr/"},
            "languagetarget": {"japanese": "https://www.postgresql.jp/"},
            "parameters": [["utm_source", "demo"]],
        },
        "pg-download": {"url": f"{site}/download/", "type": "splash", "splash_id": splash_id},
    }
    kinds |= {alias: {"url": framed, "type": "overlay", "overlay_id": overlay} for alias, overlay in overlays.items()}
    return {alias: urls.add(user_id, custom=alias, **members)["id"] for alias, members in kinds.items()}


def _splash(user_id: int) -> int:
    members = {
        "name": "One moment",
        "title": "A word from our bakery",
        "message": "The rye bread is back, from Thursday to Saturday.\nYou will be redirected in a moment.",
        "link": "https://example.com/",
        "counter": 10,
    }
    return Splash.add(user_id, members)


def _overlays(user_id: int) -> dict[str, int]:
    """Add an overlay of most types, and return their ids by the alias of the link that shows them."""
    members: dict[str, dict[str, str]] = {
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
            "link": "https://example.com/",
        },
    }
    return {alias: Overlay.add(user_id, values) for alias, values in members.items()}


def _bio(user_id: int) -> int:
    """Add a bio page that links to the other demonstration data."""
    titles = {
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
    members = {
        "alias": BIO,
        "name": "Dana Demo",
        "bio": "Baker, runner, and keeper of three sourdoughs.\nEverything here is made up: click through it!",
        "theme": "sunset",
        "links": [{"title": title, "url": f"{settings().base_url}/{path}"} for path, title in titles.items()],
    }
    return BioPage.add(user_id, members)


def _codes(user_id: int) -> list[int]:
    vcard = {"fname": "Dana", "lname": "Demo", "org": "Demo Ltd", "email": "dana@example.com", "site": "example.com"}
    wifi = {"ssid": "Demo guests", "password": "welcome-2026"}
    codes = [
        ("text", "Hello from linkmgr", "Greeting", "rgb(255,255,255)", "rgb(0,0,0)"),
        ("link", "https://www.postgresql.org/about/", "Poster", "rgb(255,247,237)", "rgb(124,45,18)"),
        ("vcard", vcard, "Business card", "rgb(239,246,255)", "rgb(30,58,138)"),
        ("wifi", wifi, "Guest network", "rgb(255,255,255)", "rgb(0,0,0)"),
    ]
    return [
        qr.add(
            user_id,
            {
                "code": qr_data.new_code(),
                "type": kind,
                "data": qr_data.normalize(kind, data),
                "name": name,
                "background": background,
                "foreground": foreground,
            },
        )["id"]
        for kind, data, name, background, foreground in codes
    ]


def _add_rows(user_id: int) -> None:
    """Add rows of every kind."""
    domain = {"domain": "https://go.example.com", "redirectroot": "https://example.com/"}
    Domain.add_checked(user_id, load(Domain.creates(), domain), is_checked=False)
    overlays = _overlays(user_id)
    overlay.add_answer(user_id, overlays["demo-news"], answer='{"email": "robin@example.com"}')
    pixel_ids = [
        Pixel.add(user_id, {"type": "gapixel", "name": "Shop", "tag": "UA-12345678-1"}),
        Pixel.add(user_id, {"type": "fbpixel", "name": "Spring campaign", "tag": "1234567890"}),
    ]
    links = _links(user_id, pixel_ids, _splash(user_id), overlays)
    spring = Campaign.add(user_id, {"name": "Spring", "slug": "spring", "public": True})
    Campaign.add(user_id, {"name": "Draft"})
    for alias in ("about-pg", "pg-news", "pg-docs"):
        campaigns.assign(user_id, spring, links[alias])
    favorites = {"name": "Favorites", "color": "#f97316", "description": "What we show first", "starred": True}
    shelf = Channel.add(user_id, favorites)
    Channel.add(user_id, {"name": "Archive", "color": "#64748b"})
    Key.add(user_id, {"name": "Newsletter", "scopes": ["links:create", "stats:read"]})
    items = {"links": list(links.values()), "bio": [_bio(user_id)], "qr": _codes(user_id)}
    for kind, item_ids in items.items():
        for item_id in item_ids:
            channels.assign(user_id, shelf, item_id, type=kind)
    demo_visits.add(user_id)


def _is_new(user_id: int) -> bool:
    """Return True if the user never had any rows. The counters of deleted rows are kept."""
    return not account.overview(user_id)["used"]


def seed(*, with_demo: bool) -> dict[str, str]:
    """Add the users that are missing, and return the API keys by user name."""
    ids = {ADMIN: _user(ADMIN, admin=True)}
    if with_demo:
        ids[DEMO] = _user(DEMO, plan="Pro")
        if _is_new(ids[DEMO]):
            # After an earlier `demo` was deleted, another user may have taken one of its aliases.
            with suppress(psycopg2.errors.UniqueViolation):
                _add_rows(ids[DEMO])
    return {name: users.read(user_id)["apikey"] for name, user_id in ids.items()}
