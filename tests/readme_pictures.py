"""The pictures of the README, which only `make picture` draws: the page of a link with its first visits, and a bio
page, a splash page and the documentation. Beside them is the hash of what they are drawn from."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from random import Random

import pytest
from flask import Flask
from PIL import Image

from tests.conftest import ROOT, Client
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.fit import style
from tests.support.sessions import sign_in
from tests.support.visited import Store, Visited

pytestmark = pytest.mark.browser

FOLDER, SIZE, GAP = ROOT / ".github", (1280, 800), 16
SHOWN = ("base.html", "macros.html", "bio.html", "go_page.html", "go_splash.html", "docs.html", "docs_operations.html",
         "console/layout.html", "console/detail.html", "console/link.html", "console/charts.html")  # fmt: skip
MAX_BYTES = 100_000
CLICKS = (6, 19, 31, 22, 38, 57, 41)  # of each day, the last of which is today
PLACES = (
    ("Germany", "Berlin"), ("Germany", "Berlin"), ("United States", "Chicago"), ("France", "Lyon"), ("Japan", "Osaka"),
)  # fmt: skip


def visits(link_id: int) -> list[Visited]:
    chosen, now = Random(4), datetime.now(UTC)  # noqa: S311
    return [
        Visited(
            link_id,
            now - timedelta(days=days),
            b"visitor %d" % chosen.randrange(250),
            country=place[0],
            city=place[1],
            referrer=chosen.choice(("Direct, email and other", "news.ycombinator.com", "Direct, email and other")),
            browser=chosen.choice(("Firefox", "Chrome", "Safari")),
        )
        for days, clicks in enumerate(reversed(CLICKS))
        for _ in range(clicks)
        for place in [chosen.choice(PLACES)]
    ]


def test_a_pasted_url_and_its_first_visits_make_the_picture(
    *, browser: Browser, serve: Callable[..., str], app: Flask, alice: Client, sql: Sql, store: Store
) -> None:
    local = serve("--workers", "1", base_url="http://links.test", serve_loopback="1")
    sign_in(browser, local.replace("127.0.0.1", "links.test"), app, alice.id)
    sql("UPDATE sessions SET by_admin = false RETURNING 1")  # each page would say who made the link
    browser.find("#urls").send_keys("https://example.com/shop/summer-sale")
    browser.click("Create link")
    browser.wait_for_text("Link created")
    [link] = sql(
        "UPDATE links SET alias = 'summer', title = 'Summer sale', created = now() - interval '6 days' RETURNING id"
    )
    store(visits(link["id"]))
    browser.find(".made .buttons a").click()
    browser.wait_for_text("clicks in the last 28 days")
    browser.click("7d")
    browser.wait_for_text(f"{sum(CLICKS)} clicks in the last 7 days")
    save("link", [shot(browser, *SIZE)])


def test_the_second_picture_shows_a_bio_page_a_splash_page_and_the_documentation(
    browser: Browser, base: str, alice: Client, sql: Sql
) -> None:
    links = [{"title": title, "url": "https://example.com/"} for title in ("Bread", "Cakes", "Opening hours")]
    bio = {"name": "Mila's Bakery", "alias": "mila", "bio": "Sourdough since 1998.", "theme": "light", "links": links}
    alice.add("/api/bio/add", bio)
    splash = alice.add(
        "/api/splash/add",
        {"name": "Sale", "title": "Summer sale", "message": "All cakes are half price.", "counter": 10},
    )
    alice.add("/api/url/add", {"url": "https://example.com/sale", "custom": "sale", "type": str(splash)})
    pages = {"/mila": 360, "/sale": 460, "/api/docs": 700}
    save("pages", [shot(browser, width, 620, base + path) for path, width in pages.items()])


def shot(browser: Browser, width: int, height: int, address: str = "") -> Image.Image:
    browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    browser.size(width, height)
    if address:
        browser.open(address)
    style(browser, "light")
    image = Image.open(BytesIO(browser.driver.get_screenshot_as_png()))
    browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": False})
    assert image.size == (width, height)
    return image


def save(name: str, images: list[Image.Image]) -> None:
    """Store the images beside each other, and the hash of what they are drawn from."""
    width = sum(image.width + GAP for image in images) - GAP
    whole, packed, left = Image.new("RGB", (width, images[0].height), "#dfe3ec"), BytesIO(), 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width + GAP
    whole.save(packed, "WEBP", quality=88, method=6)
    assert len(packed.getvalue()) < MAX_BYTES
    (FOLDER / f"{name}.webp").write_bytes(packed.getvalue())
    (FOLDER / "pictures.txt").write_text(drawn_from())


def drawn_from() -> str:
    """Return the hash of the templates and style sheets that the pictures show."""
    files = [*(ROOT / "linkmgr" / "static").glob("*.css"), *(ROOT / "linkmgr" / "templates" / name for name in SHOWN)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()
