"""Short links in a Chromium that identifies as a phone, uses French or identifies as a crawler."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from linkmgr.core.web import passwords
from tests.support import foreign
from tests.support.browser import PHONE, Browser
from tests.support.shortlinks import Make
from tests.support.targets import FIREFOX, IPHONE

pytestmark = pytest.mark.browser

SECRET = "open sesame"


@pytest.fixture
def site() -> Iterator[str]:
    """A third-party web server whose pages show their path."""

    def page(request: BaseHTTPRequestHandler) -> None:
        html = f'<link rel="icon" href="data:,"><h1>You are at {request.path}</h1>'.encode()
        foreign.answering(html, Content_Type="text/html")(request)

    with foreign.server(page) as port:
        yield f"http://127.0.0.1:{port}"


def emulate(browser: Browser, agent: str, language: str = "en") -> None:
    override = {"userAgent": agent, "acceptLanguage": language}
    browser.driver.execute_cdp_cmd("Network.setUserAgentOverride", override)


@pytest.fixture
def person(browser: Browser) -> Iterator[Browser]:
    """A browser whose user agent and language can be changed."""
    agent = str(browser.run("return navigator.userAgent"))
    yield browser
    emulate(browser, agent)


@pytest.mark.parametrize("name", ["127.0.0.1", "branded.test"])
def test_a_mistyped_password_is_reported_and_the_correct_one_redirects(
    person: Browser, base: str, site: str, short: Make, name: str
) -> None:
    locked = short(url=f"{site}/inside", password_hash=passwords.hashed(SECRET))
    if name != "127.0.0.1":
        locked.brand(name, scheme="http")
    emulate(person, FIREFOX)
    person.size(*PHONE)
    person.open(base.replace("127.0.0.1", name) + locked.path)
    person.press("open sesam", "\n")
    person.wait_for_text("This password is wrong. Try again.")
    assert person.find("[role=alert]").is_displayed()
    person.press(SECRET)
    person.click("Continue")
    person.wait_for_text("You are at /inside")
    locked.wait_for_clicks(1)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_phone_opens_the_app(person: Browser, base: str, site: str, short: Make, scripts: bool) -> None:
    link = short(url=f"{site}/web", deeplink={"apple": f"{site}/store"})
    emulate(person, IPHONE)
    person.scripts(run=scripts)
    person.open(base + link.path)
    person.wait_for_text("You are at /store")
