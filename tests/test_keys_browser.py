"""API keys in Chromium: from the first key to its end."""

from pathlib import Path

import pytest

from linkmgr import keys
from tests.conftest import Client
from tests.support import factories
from tests.support.browser import Browser
from tests.support.console_pages import check
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, login_link

pytestmark = pytest.mark.browser


def test_a_key_is_made_copied_used_rotated_and_deleted(
    *, base: str, browser: Browser, admin: Client, alice: Client, sql: Sql, tmp_path: Path
) -> None:
    browser.open(login_link(base, admin, alice))
    browser.wait_for("/console")
    browser.open(f"{base}/console/keys")
    check(browser, "empty", tmp_path)
    factories.domain(sql, alice.id)
    browser.click("Create your first API key")
    check(browser, "form", tmp_path)
    browser.size(1280, 900)
    browser.find("#name").send_keys("Newsletter")
    browser.find("[aria-label='links:create']").click()
    browser.find("#current_password").send_keys(PASSWORD)
    browser.find("form.form").submit()
    browser.wait_for_text("it is not shown again")
    check(browser, "made", tmp_path)
    browser.find("[data-copy=secret]").click()
    browser.wait_for_text("Copied")
    secret = browser.find("#secret").text
    assert keys.is_well_formed(secret)
    client = Client(alice.http, secret)
    client.add("/api/url/add", {"url": "https://example.com/"})
    assert client.get("/api/urls").status_code == 403
    alice.add("/api/key/add", {"name": "x" * 255, "scopes": ["*"], "own_only": True, "expires": "2030-12-31 23:59:59"})
    browser.click("I have copied it")
    browser.wait_for("/console/keys")
    check(browser, "list", tmp_path)
    [key] = [key for key in alice.get("/api/keys").get_json()["data"]["keys"] if key["name"] == "Newsletter"]
    for action in ("edit", "rotate", "delete"):
        browser.open(f"{base}/console/keys/{key['id']}/{action}")
        check(browser, action, tmp_path)
    browser.click("Delete API key")
    browser.wait_for("/console/keys")
    browser.wait_for_text("API key deleted.")
    assert client.get("/api/urls").status_code == 401
