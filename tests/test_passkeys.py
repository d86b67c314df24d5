"""Passkeys in Chromium, with its virtual authenticator: adding, sign-in, confirmation, and what is refused."""

from collections.abc import Iterator

import pyotp
import pytest
from flask import Flask
from selenium.webdriver.common.virtual_authenticator import VirtualAuthenticatorOptions

from tests.conftest import Client
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.fit import faults
from tests.support.pages import PASSWORD
from tests.support.servers import free_port, serving

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def service(app: Flask, dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service whose host name browsers trust without HTTPS."""
    port, log = free_port(), tmp_path_factory.mktemp("passkeys") / "log"
    base = f"http://localhost:{port}"
    data_dir = app.extensions["linkmgr_settings"].data_dir
    with serving(
        port, log, "--workers", "1", stop="QUIT", database_url=dsn, data_dir=data_dir, base_url=base, link_check="0"
    ):
        yield base


@pytest.fixture
def authenticator(browser: Browser) -> Iterator[Browser]:
    """A browser with a device that has a fingerprint reader and stores passkeys."""
    options = VirtualAuthenticatorOptions(
        transport=VirtualAuthenticatorOptions.Transport.INTERNAL,
        has_resident_key=True,
        has_user_verification=True,
        is_user_verified=True,
    )
    browser.driver.add_virtual_authenticator(options)
    yield browser
    browser.driver.remove_virtual_authenticator()


def sign_in(browser: Browser, service: str) -> None:
    browser.open(f"{service}/login")
    browser.find("#email").send_keys("alice")
    browser.find("#password").send_keys(PASSWORD)
    browser.click("Sign in")
    browser.wait_for("/console")


def confirm(browser: Browser, service: str) -> None:
    browser.open(f"{service}/account/factors")
    browser.click("Confirm that it is you")
    browser.wait_for("/account/confirm")
    browser.find("#current_password").send_keys(PASSWORD)
    browser.click("Confirm with the password")
    browser.wait_for("/account/factors")


def add_passkey(browser: Browser, name: str) -> None:
    browser.find("#name").send_keys(name)
    browser.click("Add a passkey")


def sign_out(browser: Browser) -> None:
    browser.find("form[action$='sign-out']").submit()
    browser.wait_for("/login")


def test_a_passkey_signs_in_without_a_password_and_confirms_changes(
    authenticator: Browser, service: str, alice: Client, sql: Sql
) -> None:
    browser = authenticator
    browser.open(f"{service}/login")
    assert "passkey" not in browser.text
    sign_in(browser, service)
    confirm(browser, service)
    found = faults(browser, "best-practice")
    add_passkey(browser, "Laptop <b>")
    browser.wait_for_text("The passkey has been added.")
    assert "Laptop <b>" in browser.text
    add_passkey(browser, "again")
    browser.wait_for_text("This device has a passkey of yours already.")
    found += faults(browser, "best-practice")
    sign_out(browser)
    found += faults(browser, "best-practice")
    browser.click("Sign in with a passkey")
    browser.wait_for("/console")
    browser.open(f"{service}/account")
    assert not browser.all("input[type=password][name=current_password]")
    browser.click("Confirm that it is you")  # a sign-in is no confirmation, even one with a passkey
    browser.wait_for("/account/confirm")
    found += faults(browser, "best-practice")
    browser.click("Use a passkey")
    browser.wait_for("/account")
    browser.click("Show key")
    browser.wait_for_text("linkmgr_")
    [used] = sql("SELECT counter > 0 AND used IS NOT NULL AS used, name FROM factors")
    assert (used["used"], used["name"]) == (True, "Laptop <b>")
    assert found == [], "\n".join(found)


def test_each_page_of_one_time_codes_is_accessible_and_fits(
    authenticator: Browser, service: str, alice: Client
) -> None:
    browser = authenticator
    sign_in(browser, service)
    browser.open(f"{service}/account/factors")
    found = faults(browser, "best-practice")
    confirm(browser, service)
    add_passkey(browser, "Laptop")
    browser.wait_for_text("The passkey has been added.")
    browser.click("Set up one-time codes")
    browser.wait_for_text("Scan this image")
    phone = pyotp.TOTP("".join(browser.find("p.mono").text.split()))
    found += faults(browser, "best-practice")
    for code, text in (("123456", "This code is wrong"), (phone.now(), "Recovery codes")):
        browser.find("#code").send_keys(code)
        browser.click("Turn on one-time codes")
        browser.wait_for_text(text)
        found += faults(browser, "best-practice")
    sign_out(browser)
    browser.find("#email").send_keys("alice")
    browser.find("#password").send_keys(PASSWORD)
    browser.click("Sign in")
    browser.wait_for("/login/code")
    found += faults(browser, "best-practice")
    browser.driver.set_user_verified(False)
    browser.click("Use a passkey")
    browser.wait_for_text("No passkey was used. Try again.")
    found += faults(browser, "best-practice")
    assert found == [], "\n".join(found)
