"""The first picture of the README: the page of a link with its first visits. `make picture` stores it in .github."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from random import Random

import pytest
from flask import Flask
from PIL import Image

from tests.conftest import Client
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.fit import style
from tests.support.sessions import sign_in
from tests.support.visited import Store, Visited

pytestmark = pytest.mark.browser

SIZE = (1280, 800)
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
    browser.size(*SIZE)
    style(browser, "light")
    browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    image, packed = Image.open(BytesIO(browser.driver.get_screenshot_as_png())), BytesIO()
    image.convert("RGB").save(packed, "WEBP", quality=88, method=6)
    browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": False})
    assert image.size == SIZE
    assert len(packed.getvalue()) < MAX_BYTES
    if path := os.environ.get("PICTURE"):
        Path(path).write_bytes(packed.getvalue())
