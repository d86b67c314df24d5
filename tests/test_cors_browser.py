"""A page of another origin calls the API in Chromium."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Client
from tests.support.browser import Browser
from tests.support.foreign import answering, server
from tests.support.pages import PASSWORD

pytestmark = pytest.mark.browser


class Page:
    """A page of another origin, and the URL of the service."""

    def __init__(self, browser: Browser, base: str, foreign: str) -> None:
        self.browser, self.base, self.foreign = browser, base, foreign

    def open(self) -> None:
        self.browser.open(self.foreign)

    def fetch(self, path: str, **options: Any) -> dict[str, Any]:
        """Return the status, headers and body that the script of the page reads, or the error that it gets."""
        answer: dict[str, Any] = self.browser.run(
            f"""
            return fetch({json.dumps(self.base + path)}, {json.dumps(options)}).then(
                async answer => ({{
                    status: answer.status, body: await answer.json(), headers: Object.fromEntries(answer.headers)
                }}),
                error => ({{ error: error.name }}))
            """
        )
        return answer


@pytest.fixture
def page(browser: Browser, base: str) -> Iterator[Page]:
    with server(answering(b"<!doctype html><title>app</title>", Content_Type="text/html")) as port:
        yield Page(browser, base, f"http://127.0.0.1:{port}/")


def test_a_page_of_another_origin_creates_and_lists_links(page: Page, alice: Client) -> None:
    page.open()
    headers = {"Authorization": f"Bearer {alice.key}", "Content-Type": "application/json", "X-Request-Id": "page-1"}
    body = json.dumps({"url": "https://example.com/sale", "custom": "summer"})
    added = page.fetch("/api/url/add", method="POST", headers=headers, body=body)
    assert (added["status"], added["body"]["shorturl"]) == (200, f"{page.base}/summer")
    assert added["headers"]["x-request-id"] == "page-1"
    assert added["headers"]["x-ratelimit-remaining"].isdigit()
    assert added["headers"]["ratelimit"].startswith('"default";r=')
    listed = page.fetch("/api/urls", headers=headers)
    assert [link["id"] for link in listed["body"]["data"]["urls"]] == [added["body"]["id"]]
    deleted = page.fetch(f"/api/url/{added['body']['id']}/delete", method="DELETE", headers=headers)
    assert (deleted["status"], deleted["body"]["error"]) == (200, 0)
    refused = page.fetch("/api/nothing", method="DELETE", headers=headers)
    assert (refused["status"], refused["body"]["code"]) == (404, "no_such_operation")


def test_the_cookie_of_a_signed_in_user_is_of_no_use_to_a_page_of_another_origin(page: Page, alice: Client) -> None:
    browser = page.browser
    browser.open(f"{page.base}/login")
    browser.find("[name=email]").send_keys("alice@example.com")
    browser.find("[name=password]").send_keys(PASSWORD)
    browser.click("Sign in")
    browser.wait_for("/console")
    page.open()
    refused = page.fetch("/api/account")
    assert (refused["status"], refused["body"]["code"]) == (401, "key_missing")
    assert page.fetch("/api/account", credentials="include") == {"error": "TypeError"}
    assert page.fetch("/account") == {"error": "TypeError"}
    complaints = browser.complaints()
    assert len(complaints) == 2
    assert all("blocked by CORS policy" in complaint for complaint in complaints)
