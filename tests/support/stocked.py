"""Rows of all kinds, with names that are long, of both directions, and with emoji, for the pages of the console."""

from datetime import UTC, datetime, timedelta

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.visited import Store, Visited

TITLES = (
    "A name of 255 characters " + "x" * 230,
    "عرض الصيف الكبير على جميع المنتجات",
    "🎉🍞 Party bread",
    "",
)

LINKS = [
    {"title": "Shop", "url": "https://example.com/shop"},
    {"title": "Workshops, with a title that needs more than one line", "url": "https://example.org/" + "long/" * 30},
]


def fill_others(alice: Client, sql: Sql, store: Store) -> dict[str, int]:
    """Add QR codes, bio pages and a campaign with links. Return the ids of those that have most members, by page."""
    for number, name in enumerate(TITLES[:3]):
        alice.add("/api/qr/add", {"type": "text", "data": TITLES[2 - number], "name": name})
        alice.add("/api/bio/add", {"name": name})
        alice.add("/api/campaign/add", {"name": name})
    code = alice.add(
        "/api/qr/add",
        {"type": "link", "data": "https://example.com/?" + "parameters" * 20, "foreground": "rgb(20,60,140)",
         "background": "rgb(255,246,220)", "name": "Poster 🌞 عرض"},
    )  # fmt: skip
    bio = alice.add("/api/bio/add", {"name": "Dana 🌞", "bio": "Potter.\nLisbon.", "theme": "sunset", "links": LINKS})
    campaign = alice.add("/api/campaign/add", {"name": "Summer sale 🌞 عرض", "slug": "summer", "public": True})
    links = [factories.link(sql, alice.id, title=title) for title in TITLES]
    for link_id in links:
        alice.post(f"/api/campaign/{campaign}/assign/{link_id}")
    now = datetime.now(UTC)
    store(
        Visited(target, now - timedelta(days=day)) for day in range(60) for target in (code, links[0], links[day % 4])
    )
    return {"qrs": code, "bios": bio, "campaigns": campaign}
