"""Every page in Chromium: its accessibility (WCAG 2.2 AA), and its fit to screens of 320 to 2560 pixels."""

from collections.abc import Iterable
from itertools import cycle

import pytest
from flask import Flask

from linkmgr import demo
from linkmgr.repository import login
from tests.conftest import Client
from tests.support import axe
from tests.support.browser import Browser
from tests.support.console_pages import LOOKS, SIZES, style
from tests.support.factories import Sql
from tests.support.pages import pages

pytestmark = pytest.mark.browser

DOCS = "/api/docs"
WIDTHS = (320, 390, 768, 1280, 2560)
# The width of a phone's window grows with the page, so it is not compared.
WIDTH = "return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"


@pytest.fixture
def clients(app: Flask) -> dict[str, Client]:
    """Administrator and demo user, who has rows of every kind."""
    with app.app_context():
        return {name: Client(app.test_client(), key) for name, key in demo.seed(with_demo=True).items()}


def faults(browser: Browser, path: str, looks: Iterable[tuple[str, str]], *more: str) -> list[str]:
    """Return the faults of the open page, with all details open, in all sizes and directions and in these looks."""
    browser.run("document.querySelector('[data-pause]')?.click()")  # the countdown of a splash page
    if path != DOCS:  # all of its operations at once are more than axe reads in a minute
        browser.run("for (const details of document.querySelectorAll('details')) details.open = true")
    # With this attribute, browsers discard the page of an error. Content-Disposition makes them save a file.
    found = [f"{path} has a link with the attribute download"] if browser.all("a[download]") else []
    for width in WIDTHS:
        browser.size(width, 900)
        for direction in ("rtl", "ltr"):
            browser.run(f"document.documentElement.dir = '{direction}'")
            if (overflow := browser.run(WIDTH) - width) > 0:
                found.append(f"{path} is {overflow} pixels too wide at {width}, {direction}")
    for size, scheme in looks:
        browser.size(*SIZES[size])
        style(browser, scheme)
        found += [f"{path}, {size}, {scheme}: {violation}" for violation in axe.violations(browser, *more)]
    return found


def sign_in(browser: Browser, base: str, app: Flask, user_id: int) -> None:
    with app.app_context():
        token = login.new_link(user_id).rsplit("/", 1)[1]
    browser.open(f"{base}/login/{token}")
    browser.wait_for("/console")


def test_each_page_of_the_console_is_accessible_and_fits(
    browser: Browser, base: str, app: Flask, clients: dict[str, Client], sql: Sql
) -> None:
    [demo_user] = sql("SELECT id FROM users WHERE username = 'demo'")
    sql("UPDATE users SET admin = true WHERE id = %(id)s RETURNING id", id=demo_user["id"])
    sign_in(browser, base, app, demo_user["id"])
    found, looks = [], cycle(LOOKS)  # one for each page, since all pages have the same components
    for path in [*pages(app, sql, demo_user["id"]), "/account", "/console/links?status=public&password=no&q=e"]:
        if app.test_client().get(path).mimetype != "text/html" or path.endswith(("/qr", "/image", ".csv", "/preview")):
            continue
        browser.open(base + path)
        found += faults(browser, path, [next(looks)], "best-practice")
    assert found == []


def test_each_public_page_is_accessible_and_fits(
    browser: Browser, base: str, app: Flask, clients: dict[str, Client], sql: Sql
) -> None:
    aliases = [row["alias"] for row in sql("SELECT alias FROM links UNION SELECT alias FROM bios")]
    codes = [row["code"] for row in sql("SELECT code FROM qrs")]
    [campaign] = sql("SELECT id, slug FROM campaigns LIMIT 1")
    paths = [*(f"/{alias}" for alias in aliases), *(f"/q/{code}" for code in codes)]
    paths += [f"/u/demo/{campaign['slug'] or 'list'}-{campaign['id']}", "/login", "/nowhere", "/login/spent", DOCS]
    found, shown = [], 0
    browser.driver.execute_cdp_cmd("Network.enable", {})
    for path in paths:
        answer = app.test_client().get(path)
        if answer.mimetype == "text/html" and "Location" not in answer.headers:
            # Without this script, a page that redirects at once stays. A countdown is paused instead.
            blocked = [] if b"data-pause" in answer.data else ["*://*:*/static/go.js*", "*://*:*/static/app.js*"]
            patterns = [{"urlPattern": pattern, "block": True} for pattern in blocked]
            browser.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urlPatterns": patterns})
            browser.open(base + path)
            found += faults(browser, path, LOOKS)
            shown += 1
    browser.driver.execute_cdp_cmd("Network.disable", {})
    assert shown >= 10
    assert found == []
