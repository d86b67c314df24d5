"""The layout of the console on narrow phones and on paper, and its menu."""

from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.conftest import Client
from tests.support import factories
from tests.support.browser import LOOKS, PHONE, Browser
from tests.support.factories import Sql
from tests.support.sessions import sign_in
from tests.support.visited import Store, Visited

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


def test_the_bars_of_a_phone_hide_no_control_that_has_the_focus(signed_in: Browser, base: str) -> None:
    browser = signed_in
    browser.size(*PHONE)
    browser.open(f"{base}/console/bios/new")
    hidden = """
        const [header, bar] = [".side", ".actions"].map((name) => document.querySelector(name));
        const controls = [...document.querySelectorAll("main :is(a, input, textarea, button)")];
        return [...controls, ...controls.reverse()].filter((control) => {
          control.focus();
          if (document.activeElement !== control || bar.contains(control)) return false;
          const {top, bottom} = control.getBoundingClientRect();
          return top < header.getBoundingClientRect().bottom || bottom > bar.getBoundingClientRect().top;
        }).map((control) => control.outerHTML)
    """
    assert browser.run(hidden) == []


def test_paper_has_no_controls_exact_times_and_all_figures(
    signed_in: Browser, base: str, alice: Client, sql: Sql
) -> None:
    browser = signed_in
    link, channel = factories.link(sql, alice.id), factories.channel(sql, alice.id)
    factories.visit(sql, link)
    controls = """
        return [...document.querySelectorAll("button, summary, input, select")].filter((control) =>
          control.checkVisibility({visibilityProperty: true})).map((control) => control.outerHTML)
    """
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    for path in ("links", f"links/{link}", "channels", f"channels/{channel}", "keys"):
        browser.open(f"{base}/console/{path}")
        assert browser.run(controls) == [], path
    browser.open(f"{base}/console/links/{link}")
    browser.run("document.querySelector('.chart details').open = true")
    cut = "const box = document.querySelector('.chart .figures'); return box.scrollHeight > box.clientHeight"
    assert browser.run(cut) is False
    shown = browser.run("return getComputedStyle(document.querySelector('time'), '::after').content")
    assert shown == f'"{browser.find("time").get_attribute("title")}"'
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_long_name_has_four_lines_until_one_points_at_it(
    signed_in: Browser, base: str, alice: Client, sql: Sql
) -> None:
    browser = signed_in
    browser.size(*PHONE)
    link = factories.link(sql, alice.id, title="x" * 255)
    browser.open(f"{base}/console/links/{link}")
    heading = browser.find("h1")
    height = heading.rect["height"]
    assert height < 150
    ActionChains(browser.driver).move_to_element(heading).perform()
    browser.wait_until(lambda: heading.rect["height"] > height)


def test_a_folded_group_of_the_menu_stays_so(signed_in: Browser, base: str) -> None:
    browser = signed_in

    def groups() -> list[bool]:
        found: list[bool] = browser.run("return [...document.querySelectorAll('nav details')].map(({open}) => open)")
        return found

    browser.open(f"{base}/console/links")
    assert groups() == [True, True]
    browser.find("nav summary").send_keys(Keys.ENTER)
    browser.wait_until(lambda: groups() == [False, True])
    browser.wait_until(lambda: bool(browser.run("return localStorage.length === 1")))
    browser.open(f"{base}/console/channels")
    assert groups() == [False, True]
    browser.find("nav summary").send_keys(Keys.ENTER)
    browser.wait_until(lambda: bool(browser.run("return localStorage.length === 0")))
    browser.scripts(run=False)
    browser.open(f"{base}/console/links")
    browser.click("Set up")
    assert not browser.find("a[href='/console/domains']").is_displayed()


def test_the_menu_of_an_administrator_scrolls_to_its_entry_in_a_low_window(
    browser: Browser, base: str, app: Flask, admin: Client
) -> None:
    sign_in(browser, base, app, admin.id)
    browser.size(1280, 800)
    inside = """
        const [menu, end, entry] = [".menu nav", ".menu-end", ".menu [aria-current]"].map((name) =>
            document.querySelector(name).getBoundingClientRect());
        const isSeen = entry.top >= menu.top - 1 && entry.bottom <= menu.bottom + 1;
        return isSeen && menu.bottom <= end.top && end.bottom <= innerHeight;
    """
    for path in ("/console", "/console/administration", "/console/administration/activity"):
        for height in (800, 500):
            browser.size(1280, height)
            browser.open(base + path)
            assert browser.run(inside), (path, height)
    assert browser.run("const nav = document.querySelector('.menu nav'); return nav.scrollHeight > nav.clientHeight")
    browser.run("localStorage.setItem('fold Administration', '1')")
    browser.open(f"{base}/console/administration/activity")
    assert browser.run(inside), "its group is open"
    browser.run("localStorage.clear()")


def test_the_bar_of_selected_rows_has_at_most_a_tenth_of_the_window(
    signed_in: Browser, base: str, alice: Client, sql: Sql
) -> None:
    for make in (factories.campaign, factories.channel, *[factories.link] * 30):
        make(sql, alice.id)
    for width, height in ((390, 844), (800, 800), (1280, 800)):
        signed_in.size(width, height)
        signed_in.open(f"{base}/console/links")
        signed_in.find("[name=id]").click()
        assert 40 < signed_in.find(".bulk").rect["height"] <= height / 10
        signed_in.click("More")
        panel = signed_in.find("#bulk-more").rect
        assert panel["height"] > 100
        assert panel["x"] >= 0
        assert panel["x"] + panel["width"] <= width
        cut = "const panel = document.getElementById('bulk-more'); return panel.scrollWidth > panel.clientWidth"
        assert signed_in.run(cut) is False


# Figures that do not end where their heading ends, or have neither a heading nor a label.
SHIFTED = """
    const end = (cell) => cell.getBoundingClientRect().right;
    const headings = [...document.querySelectorAll(".figures.wide thead th")];
    return [...document.querySelectorAll(".figures.wide tbody tr")].flatMap((row) => [...row.cells].filter((cell, at) =>
        cell.checkVisibility() && cell.matches("td") && (headings[at].checkVisibility()
            ? Math.abs(end(cell) - end(headings[at])) > 1
            : getComputedStyle(cell, "::before").content !== `"${headings[at].textContent}"`)
    ).map((cell) => cell.innerText));
"""
# Cells of a row whose texts are over each other or leave their table. Names may be cut in their box.
OVERLAPPING = """
    document.querySelectorAll(".sorts .visually-hidden").forEach((text) => text.remove());
    const range = new Range(), table = document.querySelector(".figures.wide").getBoundingClientRect();
    const box = (cell) => {
        range.selectNodeContents(cell);
        return (cell.matches(".of-link, tbody th") ? cell : range).getBoundingClientRect();
    };
    return [...document.querySelectorAll(".figures.wide tr")].flatMap((row) => {
        const boxes = [...row.cells].filter((cell) => cell.checkVisibility() && cell.innerText.trim()).map(box);
        const meet = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
            && one.top < other.bottom - 4 && other.top < one.bottom - 4;
        return boxes.filter((one, at) => one.left < table.left - 1 || one.right > table.right + 1
            || boxes.slice(at + 1).some((other) => meet(one, other))).map(() => row.innerText);
    });
"""
SCROLLS = "const box = document.querySelector('.figures.wide'); return box.scrollWidth > box.clientWidth + 1"


def test_figures_stand_below_their_headings_and_lists_fit_on_a_phone(
    signed_in: Browser, base: str, alice: Client, sql: Sql, store: Store
) -> None:
    title = "Everything about our spring sale, with all products, prices and shops"
    link = factories.link(sql, alice.id, title=title)
    now = datetime.now(UTC)
    store(Visited(link, now - timedelta(days=n % 50), b"%d" % n) for n in range(3000))
    for value in (None, 29.9, 123456.78):
        factories.conversion(sql, alice.id, link=link, value=value, event="sale", labels='{"os": "iOS"}')
    for path in (
        "statistics",
        "statistics?dimension=target",
        "statistics?dimension=country&second=device",
        "conversions",
    ):
        signed_in.open(f"{base}/console/{path}")
        for width in (320, 390, 1280):
            signed_in.size(width, 800)
            assert signed_in.run(SCROLLS) is False, (path, width)
            assert signed_in.run(OVERLAPPING) == [], (path, width)
            if path != "conversions":
                assert signed_in.run(SHIFTED) == [], (path, width)
            elif width == min(LOOKS)[0]:
                assert {row.rect["height"] < 70 for row in signed_in.all(".reported tbody tr")} == {True}, "two lines"
