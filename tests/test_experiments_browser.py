"""An experiment in Chromium: two variants, conversions from a page of another origin, and the winner."""

from http.server import BaseHTTPRequestHandler

import pytest

from tests.conftest import Client
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.foreign import answering, server
from tests.support.targets import FIREFOX, wait_until

pytestmark = pytest.mark.browser

FILL = """
    WITH more AS (
        INSERT INTO conversions (user_id, tracked_id, click, event, source, labels)
        SELECT user_id, tracked_id, click + n * interval '1 ms', 'sale', 'key', labels
          FROM conversions, generate_series(1, 100) n)
    UPDATE totals SET experiments = '{"1": {"A": 400, "B": 400}}' WHERE experiments IS NOT NULL RETURNING 1
"""


def test_an_experiment_of_two_variants_is_decided_by_conversions_and_ended(
    signed_in: Browser, alice: Client, sql: Sql
) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        answering(f"<link rel=icon href=data:,>{image}".encode(), Content_Type="text/html")(request)

    browser, image = signed_in, ""
    browser.driver.execute_cdp_cmd("Network.setUserAgentOverride", {"userAgent": FIREFOX})  # that of tests is a bot's
    with server(answer) as port:
        shop = f"http://shop.test:{port}"
        browser.press("n")
        browser.wait_for("/console/links/new")
        browser.find("#url").send_keys(f"{shop}/")
        browser.run("document.querySelector('#variants-summary').scrollIntoView({block: 'center'})")
        browser.find("#variants-summary").click()
        for part, texts in {"name": "AB", "url": (f"{shop}/A", f"{shop}/B"), "weight": "12"}.items():
            for field, text in zip(browser.all(f"[name='variants.{part}']"), texts, strict=True):
                field.send_keys(text)
        browser.click("Create link")
        browser.wait_for_text("Link created.")
        page, short, image = browser.driver.current_url, browser.find("#short").text, browser.find("#pixel").text

        browser.open(short)
        variant = browser.path[1:]
        assert variant in ("A", "B")
        wait_until(lambda: sql("SELECT FROM visitors"))
        browser.open(f"{shop}/thanks")
        wait_until(lambda: sql("SELECT FROM conversions"))
        browser.open(page)
        assert "Too few visitors:" in browser.text
        rows = [" ".join(row.text.split()) for row in browser.all("#conversions tbody tr")]
        assert f"{variant} 1 1 1 100.0 % Use {variant}" in rows

        sql(FILL)
        browser.open(page)
        assert f"{variant} is better:" in browser.text
        [link] = alice.get("/api/urls").get_json()["data"]["urls"]
        before = alice.put(f"/api/url/{link['id']}/update", {"title": "Buttons"}).get_json()["details"]
        browser.find("#conversions td button:not(.quiet)").click()
        browser.wait_for_text("has changed since you opened this page")
        browser.find("#conversions td button:not(.quiet)").click()
        browser.wait_for_text(f"All visitors now go to the target of {variant}.")
        record = alice.get(f"/api/url/{link['id']}").get_json()["details"]
        assert (record["url"], record["variants"]) == (f"{shop}/{variant}", [])

        ended = browser.driver.current_url
        alice.put(f"/api/url/{link['id']}/update", {"title": "Links"})
        browser.click("Undo")
        browser.wait_for_text("has changed since you opened this page")
        assert "Undo" not in browser.text
        browser.open(ended)
        browser.click("Undo")
        browser.wait_for_text("The experiment goes on.")
        undone = alice.get(f"/api/url/{link['id']}").get_json()["details"]
        assert (undone["url"], undone["variants"], undone["title"]) == (f"{shop}/", before["variants"], "Links")
        browser.open(ended)
        assert "Undo" not in browser.text
    browser.driver.execute_cdp_cmd("Network.setUserAgentOverride", {"userAgent": ""})
