"""The layout of the console on narrow phones and on paper."""

import pytest

from tests.conftest import Client
from tests.support import factories
from tests.support.browser import PHONE, Browser
from tests.support.factories import Sql

pytestmark = pytest.mark.browser


def test_a_narrow_phone_shows_short_urls_and_the_rows_above_the_bar(
    signed_in: Browser, base: str, alice: Client, sql: Sql
) -> None:
    browser = signed_in
    browser.size(*PHONE)
    for make in (factories.campaign, factories.channel, factories.bio):
        make(sql, alice.id)
    for host in ("https://go.example-company.com", f"https://{'a-long-name.' * 3}example.com"):
        alice.add("/api/domain/add", {"domain": host})
        alice.add("/api/url/add", {"url": "https://example.com/", "domain": host, "custom": "summer26"})
    browser.open(f"{base}/console/links")
    long, short = [element.rect["height"] for element in browser.all(".rows .short")]
    assert short < 60, "two lines"
    assert long < 80, "three lines"
    browser.find("[name=id]").click()
    assert browser.find(".bulk").rect["height"] < 70
    assert {button.rect["height"] < 45 for button in browser.all(".bulk .button")} == {True}, "one line"
    browser.open(f"{base}/console/bios")
    assert browser.find(".address .own").value_of_css_property("font-size") == "0px", "the alias has the line"


def test_paper_shows_all_figures_of_a_chart(signed_in: Browser, base: str, alice: Client, sql: Sql) -> None:
    browser = signed_in
    link = factories.link(sql, alice.id)
    factories.visit(sql, link)
    browser.open(f"{base}/console/links/{link}")
    browser.click("Show the figures")
    cut = "const box = document.querySelector('.chart .figures'); return box.scrollHeight > box.clientHeight"
    assert browser.run(cut) is True
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.run(cut) is False
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
