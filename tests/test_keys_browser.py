"""API keys in Chromium: from the first key to its end."""

import pytest

from linkmgr import keys
from tests.conftest import Client
from tests.support import factories
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.fit import faults
from tests.support.pages import PASSWORD
from tests.support.targets import wait_until

pytestmark = pytest.mark.browser


def test_a_key_is_made_copied_used_rotated_and_deleted(base: str, signed_in: Browser, alice: Client, sql: Sql) -> None:
    browser = signed_in
    browser.open(f"{base}/console/keys")
    factories.domain(sql, alice.id)
    browser.click("Create your first API key")
    assert faults(browser, "best-practice") == []
    browser.find("#name").send_keys("Newsletter")
    browser.find("[aria-label='links:create']").click()
    browser.find("#current_password").send_keys(PASSWORD)
    browser.find("form.form").submit()
    browser.wait_for_text("it is not shown again")
    assert faults(browser, "best-practice") == []
    browser.find("[data-copy=secret]").click()
    browser.wait_for_text("Copied")
    secret = browser.find("#secret").text
    assert keys.is_well_formed(secret)
    client = Client(alice.http, secret)
    client.add("/api/url/add", {"url": "https://example.com/"})
    assert client.get("/api/urls").status_code == 403
    browser.click("I have copied it")
    browser.wait_for("/console/keys")
    [key] = [key for key in alice.get("/api/keys").get_json()["data"]["keys"] if key["name"] == "Newsletter"]
    browser.open(f"{base}/console/keys/{key['id']}/delete")
    browser.click("Delete API key")
    browser.wait_for("/console/keys")
    browser.wait_for_text("API key deleted.")
    wait_until(lambda: client.get("/api/urls").status_code == 401)  # other processes know it for a second
