"""The console in Chromium: the first five minutes, and walks through its pages."""

import time
from datetime import UTC, datetime

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from linkmgr.console.link_changes import BATCH, MAX_BATCHES
from tests.conftest import Client
from tests.support import factories
from tests.support.browser import PHONE, Browser
from tests.support.factories import Sql
from tests.support.visited import Store, Visited

pytestmark = pytest.mark.browser


def test_keys_lead_to_the_search_and_to_a_new_link_which_is_deleted_in_a_dialog(
    signed_in: Browser, alice: Client, sql: Sql
) -> None:
    browser = signed_in
    link_id = factories.link(sql, alice.id)
    browser.click("Links")
    browser.wait_for("/console/links")
    browser.press("/", "page", Keys.ENTER)
    browser.wait_until(lambda: len(browser.all(".chip")) == 1)
    browser.press("n")
    browser.wait_for("/console/links/new")
    browser.wait_for_focus("url")
    browser.press("https://example.com/new", Keys.ENTER)
    browser.wait_for_text("Link created.")
    browser.click("Delete")
    assert browser.find("dialog").get_attribute("open")
    browser.press(Keys.ESCAPE)
    assert not browser.find("dialog").get_attribute("open")
    browser.click("Delete")
    browser.press(Keys.ENTER)
    assert not browser.find("dialog").get_attribute("open"), "the second Enter does not delete"
    browser.click("Delete")
    browser.find("dialog .danger").click()
    browser.wait_for("/console/links")
    assert [row["id"] for row in sql("SELECT id FROM links")] == [link_id]


def test_without_scripts_links_are_created_filtered_changed_and_deleted(
    signed_in: Browser, base: str, alice: Client, sql: Sql
) -> None:
    browser, campaign = signed_in, factories.campaign(sql, alice.id)
    browser.size(*PHONE)
    browser.click("Menu")
    assert browser.find("#menu").is_displayed()
    browser.press(Keys.TAB)
    assert browser.driver.switch_to.active_element.text == "Home"
    browser.press(Keys.ESCAPE)
    assert not browser.find("#menu").is_displayed()
    browser.scripts(run=False)
    browser.find("#urls").send_keys("https://example.com/a")
    browser.click("Create link")
    browser.wait_for_text("Link created")
    browser.click("Menu")
    browser.click("Links")
    browser.wait_for("/console/links")
    assert browser.find(".short .own").value_of_css_property("font-size") == "0px", "the alias has the line"
    browser.click("Filters")
    Select(browser.find("[name=status]")).select_by_visible_text("Public")
    browser.click("Search")
    browser.wait_for_text("Public")
    browser.find("[name=id]").click()
    browser.click("More")
    Select(browser.find(".bulk [name=campaign]")).select_by_value(str(campaign))
    browser.click("Move to campaign")
    browser.wait_for_text("1 link moved.")
    assert "status=public" in browser.driver.current_url
    assert sql("SELECT campaign FROM links") == [{"campaign": campaign}]
    browser.find(".rows .row-title a").click()
    browser.wait_for_text("No clicks in the last 28 days.")
    browser.click("Delete")
    browser.wait_for_text("Delete this link?")
    browser.click("Delete link")
    browser.wait_for_text("Link deleted.")


def test_a_preview_follows_what_is_typed_and_a_button_updates_it_without_scripts(
    signed_in: Browser, base: str, alice: Client, sql: Sql
) -> None:
    browser = signed_in

    def wait_for_preview(text: str) -> None:
        browser.driver.switch_to.frame("preview")
        browser.wait_for_text(text)
        browser.driver.switch_to.default_content()

    browser.open(f"{base}/console/splash/new")
    steps = browser.run("return history.length")
    browser.find("#name").send_keys("Sale")
    for text in ("Everything", " must go"):
        browser.find("#title").send_keys(text)
        wait_for_preview(text.strip())
    assert browser.run("return history.length") == steps
    browser.click("Create splash page")
    browser.wait_for_text("Splash page created.")
    browser.scripts(run=False)
    browser.open(f"{base}/console/overlays/new")
    browser.find("#message").send_keys("Hello visitor")
    browser.click("Update preview")
    wait_for_preview("Hello visitor")
    assert [row["title"] for row in sql("SELECT title FROM splash_pages")] == ["Everything must go"]
    assert sql("SELECT 1 FROM overlays") == []


def test_the_result_of_parameters_is_shown_after_an_outage(signed_in: Browser, base: str, alice: Client) -> None:
    browser = signed_in
    template = alice.add("/api/utm/add", {"name": "Letter", "utm_source": "letter"})
    browser.open(f"{base}/console/links/new?utm={template}")
    conditions = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.driver.execute_cdp_cmd("Network.enable", {})
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)
    browser.find("#url").send_keys("https://example.com")
    time.sleep(1)  # until the request has failed
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", conditions | {"offline": False})
    browser.wait_for_text("Visitors go to https://example.com?utm_source=letter")


def test_results_follow_what_one_types(signed_in: Browser, base: str, alice: Client, sql: Sql) -> None:
    browser = signed_in
    ids = [factories.link(sql, alice.id, title=title) for title in ("Summer sale", "Winter sale", "Winter coat")]
    factories.campaign(sql, alice.id)
    browser.open(f"{base}/console/links")
    browser.press("/", "winter")
    browser.wait_until(lambda: browser.find("#total").text == "2")
    assert browser.driver.current_url == f"{base}/console/links?q=winter"
    assert browser.driver.switch_to.active_element.get_attribute("name") == "q"
    assert not browser.find(".bulk").is_displayed()
    browser.find(f"[value='{ids[1]}']").click()
    assert browser.find(".bulk").is_displayed()


ADD_LINKS = """
    INSERT INTO links (user_id, alias, url, title)
    SELECT %(user_id)s, 'many-' || n, 'https://example.com/' || n, 'Winter' FROM generate_series(1, %(number)s) n
    RETURNING 1
"""


def test_a_change_of_all_links_that_match_continues_by_itself(
    signed_in: Browser, base: str, alice: Client, sql: Sql
) -> None:
    browser, number = signed_in, MAX_BATCHES * BATCH + 1
    sql(ADD_LINKS, user_id=alice.id, number=number)
    kept = factories.link(sql, alice.id, title="Summer")
    browser.open(f"{base}/console/links?q=winter")
    browser.click("Select 25")
    browser.wait_for_text("25 selected")
    browser.find("[name=all]").click()
    browser.click("Delete")
    browser.wait_for_text(f"Delete {number:,} links?")
    browser.click(f"Delete {number:,} links")
    browser.wait_for_text(f"{number:,} links deleted.")
    assert [row["id"] for row in sql("SELECT id FROM links")] == [kept]


def test_the_time_zone_of_the_browser_is_offered(signed_in: Browser, base: str, sql: Sql) -> None:
    browser = signed_in
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    browser.open(f"{base}/account")
    browser.click("Use Asia/Tokyo")
    browser.wait_for_text("Times are now shown in the time zone Asia/Tokyo.")
    assert not browser.find("[data-zone]").is_displayed()
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
    assert sql("SELECT timezone FROM users WHERE username = 'alice'") == [{"timezone": "Asia/Tokyo"}]


def test_the_button_of_a_short_url_copies_it_in_ascii(signed_in: Browser, base: str, alice: Client, sql: Sql) -> None:
    host = "xn--bcher-kva.example"
    domain = factories.row(sql, "domains", user_id=alice.id, scheme="https", host=host)
    factories.row(sql, "links", user_id=alice.id, alias="\u00e4bc/d", url="https://example.com/", domain_id=domain)
    browser = signed_in
    browser.open(f"{base}/console/links")
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    assert "bücher.example/\u00e4bc/d" in browser.text
    browser.find("[data-copy]").click()
    browser.wait_for_text("Copied")
    assert browser.run("return window.copied") == f"https://{host}/%C3%A4bc/d"


def test_a_second_click_on_a_slow_connection_sends_nothing(signed_in: Browser, base: str, sql: Sql) -> None:
    browser = signed_in
    slow = {"offline": False, "latency": 400, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.open(f"{base}/console/links/new")
    browser.find("#url").send_keys("https://example.com/")
    browser.run("document.querySelector('#metatitle').value = 'Sale'")  # two links without a title would be the same
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", slow)
    browser.run("const b = document.querySelector('.actions .button'); b.click(); setTimeout(() => b.click(), 200)")
    browser.wait_for_text("Link created.")
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", slow | {"latency": 0})
    assert len(sql("SELECT 1 FROM links")) == 1


def test_a_form_can_be_sent_again_after_a_download_and_after_back(
    signed_in: Browser, base: str, alice: Client, sql: Sql
) -> None:
    browser = signed_in
    factories.link(sql, alice.id)
    browser.open(f"{base}/console/links")
    browser.find("[name=id]").click()
    script = """
        let sent = 0;
        addEventListener("submit", (event) => { sent += !event.defaultPrevented; event.preventDefault(); });
        const counts = ["export", "export", "ask", "ask", "back", "ask"].map((value) => {
          if (value === "back") dispatchEvent(new Event("pageshow"));
          else document.querySelector(`[value=${value}]`).click();
          return sent;
        });
        return counts;
    """
    assert browser.run(script) == [1, 2, 3, 3, 3, 4]


def test_the_keys_are_listed_and_an_alias_follows_the_name(signed_in: Browser, base: str) -> None:
    browser = signed_in
    browser.open(f"{base}/console/bios/new")
    browser.wait_for_focus("name")
    browser.press("Zoë & Dana")
    assert browser.run("return document.getElementById('alias').value") == "zoe-dana"
    browser.find("#alias").send_keys("x")
    browser.find("#name").send_keys("!")
    assert browser.run("return document.getElementById('alias').value") == "zoe-danax"
    browser.open(f"{base}/console/links")
    browser.press("?")
    browser.wait_for_text("These shortcuts")


def test_a_chart_says_its_figures_to_the_keyboard(
    signed_in: Browser, base: str, alice: Client, sql: Sql, store: Store
) -> None:
    browser, link_id = signed_in, factories.link(sql, alice.id)
    store([Visited(link_id, datetime.now(UTC)) for _ in range(21)])
    browser.open(f"{base}/console/statistics?link={link_id}")
    browser.run("document.querySelector('[data-plot]').focus()")
    browser.press(Keys.ARROW_LEFT)
    browser.wait_for_text(": 21, 1 visitor, not complete yet")
    browser.press(Keys.HOME)
    browser.wait_for_text(": 0, 0 visitors")


def test_the_time_zone_of_the_browser_is_offered_if_it_is_another_one(
    signed_in: Browser, base: str, alice: Client, sql: Sql
) -> None:
    factories.link(sql, alice.id)
    browser = signed_in
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Europe/Berlin"})
    browser.open(f"{base}/console")
    browser.click("Use Europe/Berlin")
    browser.wait_for_text("Times are now shown in the time zone Europe/Berlin.")
    browser.open(f"{base}/console")
    assert "Times are shown in" not in browser.text
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    browser.open(f"{base}/console")
    browser.wait_for_text("Times are shown in the time zone Europe/Berlin.")
    browser.wait_for_text("Use Asia/Tokyo")
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
