"""Sign-in, the account page and error pages in Chromium. The fixture `browser` also checks that no page violates its
own policy or logs an error on the console."""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from flask import Flask
from selenium.webdriver.common.keys import Keys

from tests.conftest import Client
from tests.support.browser import PHONE, Browser
from tests.support.fit import faults
from tests.support.foreign import answering, server
from tests.support.pages import PASSWORD
from tests.support.sessions import login_link, sign_in

pytestmark = pytest.mark.browser


def api(base: str, key: str, path: str = "/api/account") -> int:
    """Return the status of an API call."""
    call = urllib.request.Request(base + path, headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(call, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.fixture
def alices(signed_in: Browser, base: str) -> Browser:
    """A browser on alice's account page."""
    signed_in.open(f"{base}/account")
    return signed_in


def test_without_scripts_a_button_signs_in(browser: Browser, base: str, app: Flask, alice: Client) -> None:
    browser.scripts(run=False)
    browser.open(login_link(base, app, alice.id))
    assert "Signing you in" in browser.text
    browser.click("Sign in")
    browser.wait_for("/console")


def test_signing_in_and_out_needs_no_mouse(browser: Browser, base: str, alice: Client) -> None:
    browser.open(f"{base}/login")
    browser.wait_for_focus("email")
    browser.press("alice@example.com", Keys.TAB, "wrong horse", Keys.ENTER)
    browser.wait_for_text("The name or the password is wrong. Check both for typing errors.")
    assert browser.find("#email").get_attribute("value") == "alice@example.com"
    browser.wait_for_focus("password")
    browser.press(PASSWORD, Keys.ENTER)
    browser.wait_for("/console")
    browser.open(f"{base}/console/links")
    browser.press(Keys.TAB)
    assert browser.driver.switch_to.active_element.text == "Skip to content"
    for _ in browser.all("header a, header button, header summary"):
        browser.press(Keys.TAB)
        focused = browser.driver.switch_to.active_element
        if focused.text == "Sign out":
            break
    assert focused.value_of_css_property("outline-style") == "solid"
    browser.press(Keys.ENTER)
    browser.wait_for("/login")


def test_the_key_is_shown_and_replaced_with_the_keyboard_and_stays_visible(
    browser: Browser, base: str, alice: Client
) -> None:
    browser.size(*PHONE)
    browser.open(f"{base}/login")
    browser.wait_for_focus("email")
    browser.press("alice@example.com", Keys.TAB, PASSWORD, Keys.ENTER)
    browser.wait_for("/console")
    browser.open(f"{base}/account")
    browser.run("document.getElementById('key-password').focus()")
    browser.press(PASSWORD, Keys.ENTER)
    browser.wait_for("/account/key")
    assert browser.find("#api-key").text == alice.key
    browser.run("document.querySelector('main summary').focus()")
    browser.press(Keys.ENTER, Keys.TAB, PASSWORD, Keys.ENTER)
    browser.wait_for("/account/key/replace")
    for selector in ("[role=status]", "#api-key"):
        middle = f"const {{top, bottom}} = document.querySelector('{selector}').getBoundingClientRect();"
        assert browser.run(f"{middle} return top >= 0 && bottom <= innerHeight"), selector
    assert alice.key
    assert (api(base, browser.find("#api-key").text), api(base, alice.key)) == (200, 401)
    assert faults(browser, "best-practice") == []


def test_the_page_of_a_dead_link_leads_back(browser: Browser, base: str) -> None:
    browser.open(f"{base}/login")
    browser.open(f"{base}/nowhere")
    browser.click("Go back")
    browser.wait_for("/login")
    browser.scripts(run=False)
    browser.open(f"{base}/nowhere")
    assert "Go back" not in browser.text


@pytest.mark.parametrize(("scheme", "color"), [("light", "245, 246, 250"), ("dark", "14, 16, 22")])
def test_pages_follow_the_color_scheme(browser: Browser, base: str, scheme: str, color: str) -> None:
    browser.scheme(scheme)
    browser.open(f"{base}/login")
    assert browser.find("body").value_of_css_property("background-color") == f"rgba({color}, 1)"


def test_it_works_over_plain_http_where_browsers_send_no_sec_fetch_site(
    browser: Browser, serve: Callable[..., str], app: Flask, alice: Client
) -> None:
    local = serve("--workers", "1", base_url="http://links.test", serve_loopback="1").replace("127.0.0.1", "links.test")
    sign_in(browser, local, app, alice.id)
    browser.open(f"{local}/account")
    browser.find("#key-password").send_keys(PASSWORD)
    browser.click("Show key")
    browser.wait_for("/account/key")
    browser.click("Copy key")
    browser.wait_for_text("Copied")
    assert browser.run("return getSelection().toString()") == alice.key
    browser.click("Sign out")
    browser.wait_for("/login")


@pytest.fixture
def foreign_page() -> Iterator[Callable[[str], str]]:
    """Serve one page from another port, which is the same site as far as cookies are concerned."""
    with ExitStack() as servers:

        def start(html: str) -> str:
            page = answering(b'<link rel="icon" href="data:,">' + html.encode(), Content_Type="text/html")
            return f"http://127.0.0.1:{servers.enter_context(server(page))}/"

        yield start


@pytest.mark.parametrize("policy", ["unsafe-url", "no-referrer"])
def test_a_form_on_another_site_changes_nothing(
    alices: Browser, base: str, alice: Client, foreign_page: Callable[[str], str], policy: str
) -> None:
    alices.open(
        foreign_page(
            f'<meta name="referrer" content="{policy}">'
            f'<form method="post" action="{base}/account/key/replace"><button>Win a prize</button></form>'
        )
    )
    alices.click("Win a prize")
    alices.wait_for("/account/key/replace")
    assert "This form was sent from another website." in alices.text
    assert alice.key
    assert api(base, alice.key) == 200
    alices.open(f"{base}/account")
    assert "alice@example.com" in alices.text


def test_no_page_can_be_framed(browser: Browser, base: str, foreign_page: Callable[[str], str]) -> None:
    browser.open(foreign_page(f'<iframe src="{base}/login"></iframe>'))
    assert any("frame-ancestors 'none'" in complaint for complaint in browser.complaints())
