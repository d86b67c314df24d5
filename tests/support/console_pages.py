"""The console in Chromium: signing in, rows for its pages, and the check of a page."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from tests.conftest import Client
from tests.support import axe, factories
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.pages import login_link
from tests.support.stocked import TITLES
from tests.support.visited import Store, Visited

SIZES = {"phone": (390, 844), "desktop": (1280, 900)}
LOOKS = (("phone", "light"), ("desktop", "dark"))


def referrers(number: int) -> str:
    return (
        "Direct, email and other",
        "news.ycombinator.com",
        "t.co",
        "a-very-long-host-name-of-a-referrer.departments.example.com",
    )[number % 4]


def fill(alice: Client, sql: Sql, store: Store) -> int:
    """Add links of all kinds, with visits of four months. Return the id of one that has all members."""
    chosen = Random(7)  # noqa: S311
    for number in range(40):
        factories.link(
            sql, alice.id, url=f"https://example.com/{'long/' * (number % 5 * 12)}", title=TITLES[number % 4]
        )
    channel, pixel = alice.add("/api/channel/add", {"name": "News"}), factories.pixel(sql, alice.id)
    link_id = alice.add(
        "/api/url/add",
        {
            "url": "https://example.com/shop/summer-sale?with=" + "parameters" * 20,
            "custom": "summer",
            "metatitle": "Summer sale 🌞 عرض الصيف",
            "description": "For the newsletter",
            "password": "secret",
            "expiry": "2030-12-31 23:59:59",
            "type": "frame",
            "status": "private",
            "geotarget": [{"location": "Germany", "link": "https://example.com/de"}],
            "parameters": [{"name": "utm_source", "value": "news"}],
            "pixels": [pixel],
            "channel": [channel],
            "campaign": factories.campaign(sql, alice.id),
        },
    )
    now = datetime.now(UTC)
    store(
        Visited(
            link_id,
            now - timedelta(days=day, minutes=chosen.randrange(60)),
            country=chosen.choice(["Germany", "United States", "South Georgia and the South Sandwich Islands"]),
            referrer=referrers(chosen.randrange(7)),
            browser=chosen.choice(["Firefox", "Chrome", "Safari"]),
        )
        for day in range(120)
        for _ in range(chosen.randrange(30 if day % 7 else 90))
    )
    sql("UPDATE totals SET clicks = 123456 WHERE tracked_id = %(id)s", id=link_id)
    return link_id


def picture(browser: Browser, path: Path) -> None:
    """Keep a picture of the whole page."""
    width, height = browser.run("return [innerWidth, document.documentElement.scrollHeight]")
    browser.size(width, max(height, 600))
    browser.driver.save_screenshot(str(path))


def style(browser: Browser, scheme: str) -> None:
    """Set the color scheme, without the transitions between colors."""
    features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    media = {"features": [{"name": name, "value": value} for name, value in features.items()]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def check(browser: Browser, name: str, folder: Path, *schemes: str) -> None:
    """Keep pictures, then open all details and check the width of the page in both directions, and its accessibility.
    test_accessibility.py checks all pages with ordinary rows, in more widths."""
    for size, scheme in LOOKS:
        browser.size(*SIZES[size])
        style(browser, scheme)
        picture(browser, folder / f"{name}-{size}-{scheme}.png")
    browser.run("for (const details of document.querySelectorAll('details')) details.open = true")
    for direction in ("rtl", "ltr"):
        browser.run(f"document.documentElement.dir = '{direction}'")
        for width, height in SIZES.values():
            browser.size(width, height)
            assert browser.run("return document.documentElement.scrollWidth") <= width, (name, width, direction)
    for scheme in schemes or ("dark",):
        style(browser, scheme)
        assert axe.violations(browser, "best-practice") == [], f"{name} {scheme}"


@pytest.fixture(name="signed_in")  # the name of the module's import must differ from that of the argument
def signed_in_browser(browser: Browser, base: str, admin: Client, alice: Client) -> Browser:
    browser.open(login_link(base, admin, alice))
    browser.wait_for("/console")
    return browser
