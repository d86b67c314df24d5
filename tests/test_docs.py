"""/api/docs: all that the document says, for people."""

import re
from collections.abc import Callable

import pytest
from flask import Flask
from selenium.webdriver.common.keys import Keys

from tests.browser import PHONE, Browser
from tests.conftest import Client
from tests.document import document
from tests.test_security_headers import POLICY

OPERATIONS = {each["operationId"] for methods in document()["paths"].values() for each in methods.values()}


def test_every_operation_is_on_it_also_without_scripts(app: Flask) -> None:
    page = app.test_client().get("/api/docs")
    assert (page.status_code, page.mimetype) == (200, "text/html")
    assert set(re.findall('<details class="operation" id="([a-z_]+)">', page.text)) == OPERATIONS


def test_it_takes_nothing_from_elsewhere_and_talks_to_this_service_alone(app: Flask) -> None:
    page = app.test_client().get("/api/docs")
    [nonce] = re.findall('nonce="(.+?)"', page.text)
    policy = f"{POLICY}; connect-src 'self'; script-src 'nonce-{nonce}'"
    assert page.headers["Content-Security-Policy"] == policy
    assert re.findall(r'(?:src|href)="(?!/|#)', page.text) == []


def test_it_is_counted_and_carries_the_limits_like_all_of_the_api(
    make_app: Callable[..., Flask], alice: Client
) -> None:
    reader = make_app(rate_limit="1 per minute").test_client()
    pages = [reader.get("/api/docs") for _ in range(2)]
    assert [page.status_code for page in pages] == [200, 429]
    assert [page.headers["X-RateLimit-Remaining"] for page in pages] == ["0", "0"]


# --- in a browser


@pytest.fixture
def docs(browser: Browser, serve: Callable[..., str]) -> Browser:
    browser.open(f"{serve('--graceful-timeout', '0')}/api/docs")
    return browser


@pytest.mark.browser
def test_an_operation_is_found_and_tried_with_the_keyboard_alone(docs: Browser, alice: Client) -> None:
    docs.run("document.getElementById('api-key').focus()")
    docs.press(str(alice.key), Keys.TAB, "pixel add")
    docs.wait_for_text(f"1 of {len(OPERATIONS)} operations")
    docs.run("document.querySelector('#pixels_add summary').focus()")
    docs.press(Keys.ENTER)
    docs.run("document.querySelector('#pixels_add textarea').focus()")
    docs.press(Keys.TAB, Keys.ENTER)
    docs.wait_for_text("HTTP 200")
    assert alice.get("/api/pixels").get_json()["data"]["pixels"][0]["tag"] == "GTM-ABC123"


@pytest.mark.browser
def test_a_refusal_is_shown_as_it_came(docs: Browser) -> None:
    docs.run("location.hash = 'pixels_read'")
    docs.find("#pixels_read-pixel_id").send_keys("17", Keys.ENTER)
    docs.wait_for_text("HTTP 401")
    assert '"code": "key_missing"' in docs.find("#pixels_read .answer").text


@pytest.mark.browser
def test_what_stands_in_the_path_and_the_query_is_sent(docs: Browser, alice: Client) -> None:
    channel = alice.add("/api/channel/add", {"name": "News"})
    docs.find("#api-key").send_keys(str(alice.key))
    docs.run("location.hash = 'channels_read'")
    docs.find("#channels_read-limit").send_keys("7")
    docs.find("#channels_read-channel_id").send_keys(str(channel), Keys.ENTER)
    docs.wait_for_text('"perpage": 7')


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_names_what_can_be_used(docs: Browser, scheme: str) -> None:
    docs.size(*PHONE)
    docs.scheme(scheme)
    docs.run("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert docs.run("return document.documentElement.scrollWidth") <= PHONE[0]
    unnamed = "input, textarea, button, a, summary"
    assert [each for each in docs.all(unnamed) if each.is_displayed() and not each.accessible_name] == []


@pytest.mark.browser
def test_without_scripts_there_is_nothing_that_does_not_work(docs: Browser) -> None:
    docs.scripts(run=False)
    docs.driver.refresh()
    assert [each for each in docs.all("form, .answer") if each.is_displayed()] == []
    docs.find("#account_update summary").click()
    assert "email_taken" in docs.find("#account_update").text
