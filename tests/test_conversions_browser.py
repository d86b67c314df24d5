"""A shop of another origin with a strict policy, in Chromium: clicks, orders, a refund, and a second browser."""

import csv
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import pytest

from tests.conftest import Client
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.foreign import answering, server
from tests.support.shortlinks import ANDROID
from tests.support.targets import FIREFOX, wait_until

pytestmark = pytest.mark.browser


def test_a_shop_reports_its_orders_by_click_id(*, signed_in: Browser, base: str, alice: Client, sql: Sql) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        order = urlsplit(request.path).path.removeprefix("/thanks/")
        told = f'data-event="sale" data-order="{order}" data-value="29,90 €"' if order[0] != "/" else ""
        page = f'<link rel=icon href=data:,><p>Shop</p><script src="{script}" defer {told}></script>'
        answering(page.encode(), Content_Type="text/html; charset=utf-8", Content_Security_Policy=policy)(request)

    def buy(order: str) -> None:
        browser.open(f"{shop}/thanks/{order}")
        wait_until(lambda: sql("SELECT FROM conversions WHERE order_id = %(order)s", order=order))

    browser = signed_in
    setup = alice.put("/api/conversions/setup", {"clickid": True, "page_value": 500}).get_json()["data"]
    script = base + urlsplit(setup["script"]).path
    policy = f"default-src 'none'; img-src data:; script-src {base}; connect-src {base}"
    browser.driver.execute_cdp_cmd("Network.setUserAgentOverride", {"userAgent": FIREFOX})
    with server(answer) as port:
        shop = f"http://shop.test:{port}"
        campaign = alice.add("/api/campaign/add", {"name": "Autumn"})
        link = alice.add("/api/url/add", {"url": f"{shop}/?utm_source=letter", "campaign": campaign})
        alias = alice.get(f"/api/url/{link}").get_json()["details"]["alias"]
        browser.open(f"{base}/{alias}")
        browser.wait_for_text("Shop")
        landing = browser.driver.current_url
        assert "utm_source=letter&lm_click=" in landing
        buy("A-1")
        buy("A-1")  # the page is loaded again
        buy("A-2")

        # Another browser has the id, and neither the storage nor the user agent
        browser.run("localStorage.clear()")
        browser.driver.execute_cdp_cmd("Network.setUserAgentOverride", {"userAgent": ANDROID})
        browser.open(landing)
        buy("A-3")
    wait_until(lambda: sql("SELECT FROM conversions WHERE labels <> '{}' HAVING count(*) = 3"))
    rows = alice.get("/api/conversions").get_json()["data"]["conversions"]
    assert [(row["order"], row["value"], row["currency"], row["source"]) for row in rows] == [
        (f"A-{n}", 29.9, "EUR", "page") for n in (3, 2, 1)
    ]
    assert alice.put(f"/api/conversion/{rows[0]['id']}/update", {"refund": 9.9}).status_code == 200

    figures = alice.get(f"/api/url/{link}/conversions").get_json()["data"]
    assert (figures["conversions"], figures["values"]) == (3, [{"currency": "EUR", "value": 79.8}])
    query = f"metrics=clicks,conversions,value,rate&by=utm_source&campaign={campaign}&period=7d"
    [row] = alice.get(f"/api/stats?{query}").get_json()["data"]["rows"]
    assert row == {"utm_source": "letter", "clicks": 1, "conversions": 3, "value": 79.8, "rate": 3.0}
    exported = csv.DictReader(alice.get("/api/conversions/export.csv").text.splitlines())
    assert [(row["order"], row["value"], row["utm_source"]) for row in exported] == [
        ("A-1", "29.9", "letter"), ("A-2", "29.9", "letter"), ("A-3", "20.0", "letter")
    ]  # fmt: skip
    browser.driver.execute_cdp_cmd("Network.setUserAgentOverride", {"userAgent": ""})
    browser.open(f"{base}/console/conversions")
    assert "29.90 EUR" in browser.text
    browser.open(f"{base}/console/links/{link}")
    assert "Their value is 79.80 EUR." in browser.text
    browser.open(f"{base}/console/campaigns/{campaign}")
    assert "3 conversions" in browser.text
    browser.open(f"{base}/console/statistics?campaign={campaign}&dimension=utm_source&period=7d")
    assert "Value, EUR" in browser.text
    assert "79.80" in browser.text
