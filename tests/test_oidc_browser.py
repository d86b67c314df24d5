"""Sign-in at a provider in Chromium: through real redirects, cookies and the policy of our pages."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support import provider as providers
from tests.support.browser import Browser
from tests.support.fit import faults
from tests.support.pages import PASSWORD
from tests.support.servers import free_port, serving

pytestmark = pytest.mark.services


@pytest.fixture
def base(app: Flask, dsn: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a service with a provider."""
    port = free_port()
    own = {"database_url": dsn, "data_dir": app.extensions["linkmgr_settings"].data_dir, "link_check": "0"}
    with ExitStack() as running:
        provider = running.enter_context(providers.running(f"http://127.0.0.1:{port}"))
        settings = provider.settings(base_url=provider.base, new_accounts="off", **own)
        yield running.enter_context(
            serving(port, tmp_path / "log", "--workers=1", "--graceful-timeout=0", stop="QUIT", **settings)
        )


def enter(browser: Browser, name: str) -> None:
    """Sign in at the provider."""
    browser.wait_until(lambda: bool(browser.all("[name=login]")))
    browser.find("[name=login]").send_keys(name)
    browser.find("[name=password]").send_keys("any")
    browser.find("button[type=submit]").click()


def test_a_user_connects_an_account_signs_out_there_too_and_signs_in_with_it(
    browser: Browser, base: str, alice: Client
) -> None:
    browser.open(f"{base}/login")
    found = faults(browser)
    browser.find("#email").send_keys("alice")
    browser.find("#password").send_keys(PASSWORD)
    browser.find("form .button").click()
    browser.wait_for("/console")
    browser.open(f"{base}/account")
    browser.find("#connect-password").send_keys(PASSWORD)
    browser.click("Connect")
    enter(browser, "al.work")
    browser.wait_for("/account")
    assert "You can now sign in with Example SSO." in browser.text
    assert "Connected to al.work@example.org" in browser.text
    found += faults(browser)
    browser.open(f"{base}/account")
    browser.click("Sign out")
    browser.wait_for("/login")
    assert "You have been signed out." in browser.text
    browser.click("Sign in with Example SSO")  # the session there goes on, because ours did not begin there
    browser.wait_for("/console")
    browser.open(f"{base}/account")
    assert "alice@example.com" in browser.text
    browser.click("Sign out")
    browser.wait_until(lambda: bool(browser.all("button[name=logout]")))
    browser.find("button[name=logout]").click()
    browser.wait_for("/login")
    assert "You have been signed out." in browser.text
    browser.click("Sign in with Example SSO")
    enter(browser, "somebody")
    browser.wait_for("/login/oidc/callback")
    assert "Example SSO knows you, but you have no account here." in browser.text
    assert found + faults(browser) == []
    assert [line for line in browser.complaints() if f"{base}/" in line] == []
