"""Interstitial pages of short links in Chromium."""

import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from linkmgr.schemas.overlay import POSITIONS, TYPES
from tests.conftest import Client
from tests.support import foreign
from tests.support.browser import DESKTOP, PHONE, Browser
from tests.support.factories import Sql
from tests.support.interstitials import add_link, overlay, splash

pytestmark = pytest.mark.browser

SITE = "shop.test"


def shop(request: BaseHTTPRequestHandler) -> None:
    """A site of a third party, with a page that forbids framing."""
    framing = "DENY" if request.path.startswith("/deny") else "ALLOWALL"
    page = b'<!doctype html><link rel="icon" href="data:,"><h1>The shop</h1><a href="/inside">Inside</a>'
    foreign.answering(page, Content_Type="text/html", X_Frame_Options=framing)(request)


@pytest.fixture(scope="session")
def target() -> Iterator[str]:
    with foreign.server(shop) as port:
        yield f"http://{SITE}:{port}/"


@pytest.fixture
def links(sql: Sql, alice: Client, base: str, target: str) -> Callable[..., str]:
    """Create a link of alice to a page of the shop, and return its URL."""

    def make(type_: str, *, page: str = "", pixels: tuple[tuple[str, str], ...] = (), **ids: int) -> str:
        return f"{base}/{add_link(sql, alice.id, type_, target + page, pixels, **ids)}"

    return make


def arrive(browser: Browser, page: str = "/") -> None:
    browser.wait_for(page)
    assert urlsplit(browser.driver.current_url).hostname == SITE


# --- splash pages


def test_the_countdown_ends_at_the_target(browser: Browser, links: Callable[..., str], alice: Client, sql: Sql) -> None:
    browser.open("about:blank")
    browser.open(links("splash", splash_id=splash(sql, alice.id, title="Welcome", counter=3)))
    assert browser.find("h1").text == "Welcome"
    began = time.monotonic()
    counted = set()

    def has_ended() -> bool:
        counted.add(browser.run("return document.querySelector('[data-counter]')?.textContent"))
        return not browser.path.startswith("/visited")

    browser.wait_until(has_ended)
    assert counted & {"2", "1"}
    assert time.monotonic() - began > 1
    arrive(browser)
    browser.driver.back()
    assert browser.driver.current_url == "about:blank"


@pytest.mark.parametrize("run", [True, False])
def test_the_visitor_can_skip_the_countdown(
    browser: Browser, links: Callable[..., str], alice: Client, sql: Sql, run: bool
) -> None:
    browser.scripts(run=run)
    browser.open(links("splash", splash_id=splash(sql, alice.id, counter=60)))
    assert ("Pause" in browser.text) == run
    browser.click("Continue now")
    arrive(browser)


def test_the_countdown_is_paused_and_resumed_with_the_keyboard(
    browser: Browser, links: Callable[..., str], alice: Client, sql: Sql
) -> None:
    remaining = "return document.querySelector('[data-counter]').textContent"
    browser.open(links("splash", splash_id=splash(sql, alice.id, counter=60)))
    browser.run("document.querySelector('[data-pause]').focus()")
    browser.press(Keys.ENTER)
    browser.wait_for_text("Resume")
    paused = browser.run(remaining)
    time.sleep(1.5)  # longer than a step of the countdown
    assert browser.run(remaining) == paused
    browser.press(Keys.SPACE)
    browser.wait_until(lambda: int(browser.run(remaining)) < int(paused))


@pytest.mark.parametrize("type_", ["splash", "direct"])
def test_without_scripts_the_page_redirects_by_itself(
    browser: Browser, links: Callable[..., str], alice: Client, sql: Sql, type_: str
) -> None:
    browser.scripts(run=False)
    browser.open(links(type_, splash_id=splash(sql, alice.id, counter=1), pixels=(("reddit", "a2_1"),)))
    arrive(browser)


# --- frames


def test_a_frame_shows_the_site_and_links_to_it(browser: Browser, links: Callable[..., str]) -> None:
    browser.open(links("frame"))
    frame = browser.find(".frame")
    assert frame.size["width"] == DESKTOP[0]
    assert frame.size["height"] > DESKTOP[1] - 100
    browser.driver.switch_to.frame(frame)
    assert browser.find("h1").text == "The shop"
    browser.click("Inside")
    browser.driver.switch_to.default_content()
    browser.click(f"Open {browser.find('.top .button').text.removeprefix('Open ')}")
    arrive(browser)


def test_a_site_that_forbids_framing_is_one_click_away(browser: Browser, links: Callable[..., str]) -> None:
    browser.size(*PHONE)
    browser.open(links("frame", page="deny"))
    browser.driver.switch_to.frame(browser.find(".frame"))
    assert "The shop" not in browser.driver.page_source
    browser.driver.switch_to.default_content()
    onward = browser.find(".top .button")
    assert onward.is_displayed()
    onward.click()
    arrive(browser, "/deny")
    assert all("'X-Frame-Options' to 'deny'" in complaint for complaint in browser.complaints())


# --- overlays


def test_an_answer_is_sent_from_the_overlay_above_the_frame(
    browser: Browser, links: Callable[..., str], alice: Client, sql: Sql
) -> None:
    made = overlay(sql, alice.id, "contact", message="Write to us")
    browser.open(links("overlay", overlay_id=made))
    browser.find("#overlay-name").send_keys("Jo", Keys.TAB, "jo@example.com", Keys.TAB, "Hello", Keys.TAB, Keys.ENTER)
    browser.wait_for_text("Thank you. Your answer has been sent.")
    assert not browser.find(".overlay form").is_displayed()
    assert browser.path.startswith("/visited")
    answers = sql("SELECT answer FROM overlay_answers WHERE overlay_id = %(id)s", id=made)
    assert [row["answer"] for row in answers] == [{"name": "Jo", "email": "jo@example.com", "message": "Hello"}]


@pytest.mark.parametrize("run", [True, False])
def test_an_overlay_is_hidden_and_shown_with_the_keyboard(
    browser: Browser, links: Callable[..., str], alice: Client, sql: Sql, run: bool
) -> None:
    browser.scripts(run=run)
    browser.open(links("overlay", overlay_id=overlay(sql, alice.id, "newsletter")))
    email = browser.find("#overlay-email")
    assert email.is_displayed()
    for _ in range(4):
        browser.press(Keys.TAB)
    assert browser.driver.switch_to.active_element.text.startswith("Hide")
    browser.press(Keys.ENTER)
    assert not email.is_displayed()
    browser.press(Keys.ENTER)
    assert email.is_displayed()
    if run:
        email.send_keys(Keys.ESCAPE)
        assert not email.is_displayed()
        assert browser.driver.switch_to.active_element.text == "Show message"


def test_overlays_fit_a_phone(browser: Browser, links: Callable[..., str], alice: Client, sql: Sql) -> None:
    browser.size(*PHONE)
    given = {"message": "x" * 300 + "\nmore\nlines", "label": "y" * 60, "link": "https://example.com/"}
    for type_, position in [("contact", position) for position in POSITIONS] + [(type_, "top") for type_ in TYPES[1:]]:
        sql("DELETE FROM links")
        browser.open(links("overlay", overlay_id=overlay(sql, alice.id, type_, position=position, **given)))
        box = browser.find(".overlay").rect
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE[0]
        assert browser.find(".top").rect["height"] <= box["y"]
        assert box["y"] + box["height"] <= PHONE[1]
        assert browser.run("return document.documentElement.scrollWidth") <= PHONE[0], (type_, position)


def test_the_form_for_messages_fits_the_smallest_phone(
    browser: Browser, links: Callable[..., str], alice: Client, sql: Sql
) -> None:
    made = overlay(sql, alice.id, "contact", message="A question, a cake, a complaint? We answer within a day.")
    browser.size(320, 450)
    browser.open(links("overlay", overlay_id=made))
    box, button = browser.find(".overlay").rect, browser.find("form .button").rect
    assert button["y"] + button["height"] <= box["y"] + box["height"] <= 450
    assert browser.run("return document.querySelector('.overlay').scrollWidth") <= box["width"] <= 320


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_choices_of_a_poll_have_the_color_of_its_text(
    browser: Browser, links: Callable[..., str], alice: Client, sql: Sql, scheme: str
) -> None:
    browser.scheme(scheme)
    colors = {"color": "#3b1747", "background": "#fde2f3"}
    browser.open(links("overlay", overlay_id=overlay(sql, alice.id, "poll", message="Tea?\nBlack\nGreen", **colors)))
    radio = browser.find("[type=radio]")
    assert radio.value_of_css_property("border-top-color") == "rgba(59, 23, 71, 1)"
    assert radio.value_of_css_property("background-color") == "rgba(0, 0, 0, 0)"
    assert radio.rect["width"] >= 16


@pytest.mark.parametrize("run", [True, False])
def test_a_coupon_is_copied(browser: Browser, links: Callable[..., str], alice: Client, sql: Sql, run: bool) -> None:
    browser.scripts(run=run)
    browser.open(links("overlay", overlay_id=overlay(sql, alice.id, "coupon", label="RYE-10")))
    assert ("Copy" in browser.text) == run
    if run:
        browser.click("Copy")
        browser.wait_for_text("Copied")
        assert browser.run("return getSelection().toString()") == "RYE-10"
