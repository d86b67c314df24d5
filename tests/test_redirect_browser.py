"""Short links in a Chromium that identifies as a phone, uses French or identifies as a crawler."""

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from linkmgr.web import passwords
from tests.support import foreign, geoip
from tests.support.browser import PHONE, Browser
from tests.support.shortlinks import ANDROID, FACEBOOK, Make
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


def test_a_phone_and_a_desktop_get_their_own_targets(person: Browser, base: str, site: str, short: Make) -> None:
    link = short(url=f"{site}/desktop", devices={"iphone": f"{site}/phone", "android": f"{site}/robot"})
    for agent, expected in ((FIREFOX, "/desktop"), (IPHONE, "/phone"), (ANDROID, "/robot")):
        emulate(person, agent)
        person.open(base + link.path)
        person.wait_for_text(f"You are at {expected}")
    link.wait_for_clicks(3)


def test_visitors_get_the_page_in_their_language(person: Browser, base: str, site: str, short: Make) -> None:
    link = short(url=f"{site}/other", languages={"fr": f"{site}/fr", "pt-br": f"{site}/br"}, parameters=[["a", "b c"]])
    for language, expected in (("fr-CH,fr", "/fr"), ("pt-BR", "/br"), ("de,en", "/other")):
        emulate(person, FIREFOX, language)
        person.open(base + link.path)
        person.wait_for_text(f"You are at {expected}?a=b%20c")


def test_device_precedes_country_and_country_precedes_language(
    person: Browser, serve: Callable[..., str], site: str, short: Make, tmp_path: Path
) -> None:
    base = serve("--workers", "1", trusted_proxies="1", geoip_database=geoip.write(tmp_path / "test.mmdb"))
    link = short(
        url=f"{site}/other",
        devices={"iphone": f"{site}/phone"},
        locations={"peru": f"{site}/peru"},
        languages={"fr": f"{site}/fr"},
    )
    for agent, address, language, expected in (
        (IPHONE, geoip.PERU, "fr", "/phone"),
        (FIREFOX, geoip.PERU, "fr", "/peru"),
        (FIREFOX, geoip.CHILE, "fr", "/fr"),
        (FIREFOX, geoip.CHILE, "de", "/other"),
    ):
        emulate(person, agent, language)
        person.driver.execute_cdp_cmd("Network.enable", {})
        person.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {"X-Forwarded-For": address}})
        person.open(base + link.path)
        person.wait_for_text(f"You are at {expected}")
    person.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {}})


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
    person.wait_for_text("The password for this link is wrong.")
    assert person.find("[role=alert]").is_displayed()
    person.press(SECRET)
    person.click("Continue")
    person.wait_for_text("You are at /inside")
    locked.wait_for_clicks(1)


def test_an_expired_link_shows_the_expiry_page(browser: Browser, base: str, short: Make) -> None:
    browser.open(base + short(expires="2020-01-01 00:00:00+00").path)
    assert "This link has expired" in browser.text
    assert browser.run("return performance.getEntriesByType('navigation')[0].responseStatus") == 410


def test_a_crawler_reads_the_preview(person: Browser, base: str, short: Make) -> None:
    link = short(title="Summer sale", metadescription="Half of everything")
    emulate(person, FACEBOOK)
    person.open(base + link.path)
    assert person.path == link.path
    content = "return document.querySelector(`meta[property='${arguments[0]}']`).content"
    assert person.driver.execute_script(content, "og:title") == "Summer sale"
    assert person.driver.execute_script(content, "og:description") == "Half of everything"
    assert person.driver.execute_script(content, "og:url") == base + link.path


@pytest.mark.parametrize("scripts", [True, False])
def test_a_phone_opens_the_app(person: Browser, base: str, site: str, short: Make, scripts: bool) -> None:
    link = short(url=f"{site}/web", deeplink={"apple": f"{site}/store"})
    emulate(person, IPHONE)
    person.scripts(run=scripts)
    person.open(base + link.path)
    person.wait_for_text("You are at /store")
