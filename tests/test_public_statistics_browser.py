"""Public statistics in Chromium: accessible pages that fit, and figures that a visitor can read."""

from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask

from linkmgr.visits.dimensions import TITLES
from tests.conftest import Client
from tests.support.browser import LOOKS, Browser
from tests.support.fit import faults
from tests.support.sessions import sign_in
from tests.support.visited import Store, Visited

pytestmark = pytest.mark.browser


def test_visitors_and_owners_see_accessible_pages(
    *, browser: Browser, base: str, app: Flask, alice: Client, store: Store
) -> None:
    campaign = alice.add("/api/campaign/add", {"name": "x" * 60})
    title = "A summer sale with a long title " * 4
    link = alice.add("/api/url/add", {"url": "https://example.com/page", "metatitle": title, "campaign": campaign})
    now, places = datetime.now(UTC), ("Germany", "Peru", "United Kingdom of Great Britain and Northern Ireland")
    long = f"{'a' * 60}.example"
    store([Visited(link, now - timedelta(days=n % 50), country=places[n % 3], referrer=long) for n in range(300)])
    subjects = f"url/{link}", f"campaign/{campaign}"
    pages = [
        alice.put(f"/api/{subject}/public", {"public": True, "tables": [*TITLES][:7]}).get_json()["data"]["url"]
        for subject in subjects
    ]
    paths = [base + "/statistics/" + page.rpartition("/")[2] for page in pages]
    sign_in(browser, base, app, alice.id)
    found: list[str] = []
    for width, scheme in LOOKS:
        for path in (*paths, f"{base}/console/links/{link}/public", f"{base}/console/campaigns/{campaign}/public"):
            browser.size(width, 900)
            browser.scheme(scheme)
            browser.open(path)
            found.extend(faults(browser, "best-practice"))
    assert found == []
