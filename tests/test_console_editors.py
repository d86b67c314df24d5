"""The previews of the console in Chromium: they follow what is typed, and links are ordered by dragging or buttons."""

from pathlib import Path
from random import Random

import pytest
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.conftest import Client
from tests.support import factories
from tests.support.browser import Browser
from tests.support.factories import Sql

pytestmark = pytest.mark.browser


LINKS = [
    {"title": "Shop", "url": "https://example.com/shop"},
    {"title": "Workshops, with a title that needs more than one line", "url": "https://example.org/" + "long/" * 30},
]


def test_the_preview_of_a_code_follows_what_is_typed_and_a_large_logo_becomes_small(
    signed_in: Browser, base: str, sql: Sql, tmp_path: Path
) -> None:
    browser = signed_in
    browser.open(f"{base}/console/qrs/new")
    before = browser.find("#preview-code img").get_attribute("src")
    browser.find("[name=type][value=wifi]").click()
    browser.find("[name='data.wifi.ssid']").send_keys("Home")
    browser.find("[name='data.wifi.password']").send_keys("correct horse")
    browser.wait_until(lambda: browser.find("#preview-code img").get_attribute("src") != before)
    browser.click("Colors black on white")
    browser.run("foreground.value = '#cccccc'; foreground.dispatchEvent(new Event('input', { bubbles: true }))")
    browser.wait_for_text("Too low for some cameras")
    assert browser.find("#foreground-summary").text == "#cccccc on #ffffff"
    browser.run("foreground.value = '#000000'; foreground.dispatchEvent(new Event('input', { bubbles: true }))")
    browser.wait_for_text("Good to scan")
    noise = Random(7).randbytes(800 * 600 * 3)  # noqa: S311
    Image.frombytes("RGB", (800, 600), noise).save(tmp_path / "logo.png")
    browser.click("Logo not set")
    browser.find("[name='logo.file']").send_keys(str(tmp_path / "logo.png"))
    browser.wait_until(lambda: browser.run("return document.getElementById('logo.file').files[0].size <= 32768"))
    browser.find("[name='data.wifi.password']").send_keys(Keys.ENTER)
    browser.wait_for_text("QR code created.")
    assert len(bytes(sql("SELECT image AS logo FROM logos")[0]["logo"])) > 100


def test_summaries_of_groups_follow_the_form(signed_in: Browser, base: str, alice: Client, sql: Sql) -> None:
    browser = signed_in
    browser.size(1280, 2400)
    campaign = str(factories.campaign(sql, alice.id))
    for path, group, control, value, text in (
        ("links", "Access not set", "status", "private", "private"),
        ("webhooks", "Filters not set", "campaign", campaign, "campaign"),
        ("domains", "Brand not set", "brandcolor", "#14532d", "#14532d"),
    ):
        browser.open(f"{base}/console/{path}/new")
        browser.click(group)
        script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', { bubbles: true }))"
        browser.driver.execute_script(script, browser.find(f"[name={control}]"), value)
        summary = browser.find(f"details:has([name={control}]) summary .optional")
        browser.wait_until(lambda shown=summary, text=text: shown.text == text)  # type: ignore[misc]


def test_all_events_and_single_ones_exclude_each_other(signed_in: Browser, base: str) -> None:
    browser = signed_in
    browser.size(1280, 2400)
    browser.open(f"{base}/console/webhooks/new")
    chosen = "return [...document.querySelectorAll('[name=events]:checked')].map((box) => box.value)"
    for click, expected in (
        ("link.created", ["link.created"]),
        ("link.deleted", ["link.created", "link.deleted"]),
        ("link.*", ["link.*"]),
        ("qr.created", ["link.*", "qr.created"]),
        ("*", ["*"]),
    ):
        browser.find(f"[name=events][value='{click}']").click()
        assert browser.run(chosen) == expected


def test_links_of_a_bio_page_are_ordered_and_shown_in_the_preview(signed_in: Browser, base: str, alice: Client) -> None:
    browser = signed_in
    bio = alice.add("/api/bio/add", {"name": "Dana", "links": LINKS})
    browser.size(1280, 1400)
    browser.open(f"{base}/console/bios/{bio}/edit")
    browser.find("#blocks li:nth-child(2) [value^=up]").click()
    first = "return document.querySelector('[name=\"links.title\"]').value"
    assert browser.run(first) == LINKS[1]["title"]
    grip = browser.find("#blocks li:nth-child(2) .grip")
    ActionChains(browser.driver).click_and_hold(grip).move_by_offset(0, -130).release().perform()
    assert browser.run(first) == LINKS[0]["title"]
    ActionChains(browser.driver).click_and_hold(browser.find(".grip")).move_by_offset(0, 130).release().perform()
    assert browser.run(first) == LINKS[1]["title"]
    browser.click("Add a link")
    assert len(browser.all("#blocks li")) == len(LINKS) + 2
    browser.find("#name").send_keys(" Miller", Keys.ENTER)
    browser.wait_for_text("Changes saved.")
    page = alice.get(f"/api/bio/{bio}").get_json()["data"]
    assert (page["name"], page["links"]) == ("Dana Miller", LINKS[::-1])
    browser.driver.switch_to.frame("phone")
    assert browser.find("h1").text == "Dana Miller"
    assert browser.find(".bio main").value_of_css_property("max-width") == "560px"
    browser.driver.switch_to.default_content()
