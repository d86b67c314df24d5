"""The console in Chromium: the first five minutes, and the accessibility and fit of each page."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from itertools import product
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from tests import axe, factories
from tests.browser import Browser
from tests.conftest import Client
from tests.console_rows import fill_plain, fill_webhooks
from tests.factories import Sql
from tests.receivers import Receiver
from tests.stocked import TITLES, fill_others
from tests.targets import FIREFOX, wait_until
from tests.test_browser import login_link
from tests.visited import Store, Visited

pytestmark = pytest.mark.browser


SIZES = {"phone": (390, 844), "desktop": (1280, 900)}


def referrers(number: int) -> str:
    return (
        "Direct, email and other",
        "news.ycombinator.com",
        "t.co",
        "a-very-long-host-name-of-a-referrer.departments.example.com",
    )[number % 4]


def fill(alice: Client, sql: Sql, store: Store) -> int:
    """Add links of all kinds, with visits of four months. Return the id of one that has all members."""
    chosen = Random(7)  # noqa: S311
    for number in range(40):
        factories.link(
            sql, alice.id, url=f"https://example.com/{'long/' * (number % 5 * 12)}", title=TITLES[number % 4]
        )
    channel, pixel = alice.add("/api/channel/add", {"name": "News"}), factories.pixel(sql, alice.id)
    link_id = alice.add(
        "/api/url/add",
        {
            "url": "https://example.com/shop/summer-sale?with=" + "parameters" * 20,
            "custom": "summer",
            "metatitle": "Summer sale 🌞 عرض الصيف",
            "description": "For the newsletter",
            "password": "secret",
            "expiry": "2030-12-31 23:59:59",
            "type": "frame",
            "status": "private",
            "geotarget": [{"location": "Germany", "link": "https://example.com/de"}],
            "parameters": [{"name": "utm_source", "value": "news"}],
            "pixels": [pixel],
            "channel": [channel],
            "campaign": factories.campaign(sql, alice.id),
        },
    )
    now = datetime.now(UTC)
    store(
        Visited(
            link_id,
            now - timedelta(days=day, minutes=chosen.randrange(60)),
            country=chosen.choice(["Germany", "United States", "South Georgia and the South Sandwich Islands"]),
            referrer=referrers(chosen.randrange(7)),
            browser=chosen.choice(["Firefox", "Chrome", "Safari"]),
        )
        for day in range(120)
        for _ in range(chosen.randrange(30 if day % 7 else 90))
    )
    sql("UPDATE totals SET clicks = 123456 WHERE target_id = %(id)s", id=link_id)
    return link_id


def picture(browser: Browser, path: Path) -> None:
    """Keep a picture of the whole page."""
    width, height = browser.run("return [innerWidth, document.documentElement.scrollHeight]")
    browser.size(width, max(height, 600))
    browser.driver.save_screenshot(str(path))


def style(browser: Browser, scheme: str) -> None:
    """Set the color scheme, without the transitions between colors."""
    features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    media = {"features": [{"name": name, "value": value} for name, value in features.items()]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def check(browser: Browser, name: str, folder: Path, *schemes: str) -> None:
    """Keep pictures if PICTURES is set, then open all details and check the width of the page in both directions, and
    its accessibility. test_accessibility.py checks all pages with ordinary rows, in more widths and color schemes."""
    for size, scheme in product(SIZES, ("light", "dark")) if os.environ.get("PICTURES") else ():
        browser.size(*SIZES[size])
        style(browser, scheme)
        picture(browser, folder / f"{name}-{size}-{scheme}.png")
    browser.run("for (const details of document.querySelectorAll('details')) details.open = true")
    for direction in ("rtl", "ltr"):
        browser.run(f"document.documentElement.dir = '{direction}'")
        for width, height in SIZES.values():
            browser.size(width, height)
            assert browser.run("return document.documentElement.scrollWidth") <= width, (name, width, direction)
    for scheme in schemes or ("dark",):
        style(browser, scheme)
        assert axe.violations(browser, "best-practice") == [], f"{name} {scheme}"


@pytest.fixture
def signed_in(browser: Browser, base: str, admin: Client, alice: Client) -> Browser:
    browser.open(login_link(base, admin, alice))
    browser.wait_for("/console")
    return browser


def visit(url: str) -> None:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=10)
    connection.request("GET", parts.path, headers={"User-Agent": FIREFOX})
    assert connection.getresponse().status == 302
    connection.close()


def test_a_pasted_url_becomes_a_short_link_whose_first_visit_is_on_a_chart(signed_in: Browser, sql: Sql) -> None:
    browser = signed_in
    browser.find("#urls").send_keys("https://example.com/a/long/path")
    browser.click("Create link")
    browser.wait_for_text("Link created")
    short = browser.find("#made-1")
    browser.find("[data-copy=made-1]").click()
    browser.wait_for_text("Copied")
    visit(short.text)
    wait_until(lambda: bool(sql("SELECT 1 FROM target_quarters")))
    short.click()
    browser.wait_for_text("1 click in the last 30 days")
    assert browser.find(".plot").accessible_name == "1 click in the last 30 days"
    assert len(browser.all(".plot .bar")) == 1


def test_keys_lead_to_the_search_and_to_a_new_link_which_is_deleted_in_a_dialog(
    signed_in: Browser, alice: Client, sql: Sql
) -> None:
    browser = signed_in
    link_id = factories.link(sql, alice.id)
    browser.click("Links")
    browser.wait_for("/console/links")
    browser.press("/", "page", Keys.ENTER)
    wait_until(lambda: len(browser.all(".chip")) == 1)
    browser.press("n")
    browser.wait_for("/console/links/new")
    browser.wait_for_focus("url")
    browser.press("https://example.com/new", Keys.ENTER)
    browser.wait_for_text("Link created.")
    browser.click("Danger")
    browser.click("Delete link")
    assert browser.find("dialog").get_attribute("open")
    browser.press(Keys.ESCAPE)
    assert not browser.find("dialog").get_attribute("open")
    browser.click("Delete link")
    browser.find("dialog .danger").click()
    browser.wait_for("/console/links")
    assert [row["id"] for row in sql("SELECT id FROM links")] == [link_id]


def test_without_scripts_a_link_is_created_found_and_deleted(signed_in: Browser, base: str, sql: Sql) -> None:
    browser = signed_in
    browser.size(*SIZES["phone"])
    browser.scripts(run=False)
    browser.find("#urls").send_keys("https://example.com/a")
    browser.click("Create link")
    browser.wait_for_text("Link created")
    browser.find("#made-1").click()
    browser.wait_for_text("No clicks in the last 30 days.")
    browser.click("Danger")
    browser.click("Delete link")
    browser.wait_for_text("Delete this link?")
    browser.click("Delete link")
    browser.wait_for_text("Link deleted.")
    browser.click("Menu")
    browser.click("Home")
    browser.wait_for("/console")


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


def test_results_follow_what_one_types_and_selected_links_are_deleted(
    signed_in: Browser, base: str, alice: Client, sql: Sql
) -> None:
    browser = signed_in
    ids = [factories.link(sql, alice.id, title=title) for title in ("Summer sale", "Winter sale", "Winter coat")]
    factories.campaign(sql, alice.id)
    browser.open(f"{base}/console/links")
    browser.press("/", "winter")
    wait_until(lambda: browser.find("#total").text == "2")
    assert browser.driver.current_url == f"{base}/console/links?q=winter"
    assert browser.driver.switch_to.active_element.get_attribute("name") == "q"
    assert not browser.find(".bulk").is_displayed()
    browser.find(f"[value='{ids[1]}']").click()
    browser.click("Select all 2")
    browser.find("[data-copy]").click()
    browser.wait_for_text("Copied")
    browser.click("Delete")
    browser.wait_for_text("Delete 2 links?")
    browser.click("Delete 2 links")
    browser.wait_for_text("2 links deleted.")
    assert [row["id"] for row in sql("SELECT id FROM links")] == ids[:1]


def test_without_scripts_links_are_filtered_and_changed(signed_in: Browser, base: str, alice: Client, sql: Sql) -> None:
    browser = signed_in
    campaign, link_id = factories.campaign(sql, alice.id), factories.link(sql, alice.id)
    browser.size(*SIZES["phone"])
    browser.scripts(run=False)
    browser.open(f"{base}/console/links")
    browser.click("Filters")
    Select(browser.find("[name=status]")).select_by_visible_text("Public")
    browser.click("Search")
    browser.wait_for_text("Public")
    browser.find(f"[value='{link_id}']").click()
    Select(browser.find(".bulk [name=campaign]")).select_by_value(str(campaign))
    browser.click("Move to campaign")
    browser.wait_for_text("1 link moved.")
    assert "status=public" in browser.driver.current_url
    assert sql("SELECT campaign_id FROM links") == [{"campaign_id": campaign}]


def test_the_time_zone_of_the_browser_is_offered(signed_in: Browser, base: str, sql: Sql) -> None:
    browser = signed_in
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    browser.open(f"{base}/account")
    browser.click("Use Asia/Tokyo")
    browser.wait_for_text("Times are now shown in the time zone Asia/Tokyo.")
    assert not browser.find("[data-zone]").is_displayed()
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
    assert sql("SELECT timezone FROM users WHERE username = 'alice'") == [{"timezone": "Asia/Tokyo"}]


def test_the_menu_of_a_phone_opens_and_escape_closes_it(signed_in: Browser) -> None:
    browser = signed_in
    browser.size(*SIZES["phone"])
    browser.click("Menu")
    assert browser.find("#menu").is_displayed()
    browser.press(Keys.TAB)
    assert browser.driver.switch_to.active_element.text == "Home"
    browser.press(Keys.ESCAPE)
    assert not browser.find("#menu").is_displayed()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_webhook_is_created_tested_changed_and_deleted(
    *,
    signed_in: Browser,
    base: str,
    alice: Client,
    receiver: Receiver,
    deliver: Callable[[], None],
    scripts: bool,
) -> None:
    browser = signed_in

    def received(number: int) -> bool:
        deliver()
        return len(receiver.received) == number

    browser.scripts(run=scripts)
    browser.open(f"{base}/console/webhooks")
    browser.click("Create your first webhook")
    browser.find("#name").send_keys("Shop")
    browser.find("#url").send_keys(receiver.url)
    browser.click("Create webhook")
    browser.wait_for_text("Nothing was saved.")
    browser.find("[value='link.*']").click()
    browser.click("Create webhook")
    browser.wait_for_text("Webhook created.")
    browser.click("Show a new secret")
    browser.wait_for_text("It is shown only now.")
    secret = browser.find("#secret").text
    browser.click("Send a test event")
    browser.wait_for_text("A test event will be delivered within seconds.")
    wait_until(lambda: received(1))
    assert receiver.received[0].verify(secret)["type"] == "webhook.test"
    browser.open(browser.driver.current_url)
    browser.find(".deliveries summary").click()
    browser.wait_for_text("webhook.test")
    browser.click("Send again")
    browser.wait_for_text("The delivery will be sent again within seconds.")
    wait_until(lambda: received(2))
    browser.click("Edit webhook")
    browser.find("[name=active]").send_keys(Keys.SPACE)
    browser.click("Save changes")
    browser.wait_for_text("This webhook is off")
    browser.click("Danger")
    browser.click("Delete webhook")
    if scripts:
        browser.find("dialog .danger").click()
    else:
        browser.wait_for_text("Delete this webhook?")
        browser.click("Delete webhook")
    browser.wait_for_text("Webhook deleted.")
    assert alice.get("/api/webhooks").get_json()["data"]["result"] == 0


@pytest.mark.parametrize("rows", ["none", "three", "many"])
def test_each_page_is_accessible_and_fits(
    *,
    signed_in: Browser,
    base: str,
    alice: Client,
    sql: Sql,
    store: Store,
    tmp_path: Path,
    rows: str,
    receiver: Receiver,
    deliver: Callable[[], None],
) -> None:
    paths = {"home": "/console", "links": "/console/links", "new": "/console/links/new", "account": "/account"}
    paths |= {"qrs": "/console/qrs", "bios": "/console/bios", "campaigns": "/console/campaigns"}
    if rows == "none":
        paths |= {"channels": "/console/channels", "overlay-new": "/console/overlays/new"}
        paths |= {"domain-new": "/console/domains/new", "pixel-new": "/console/pixels/new"}
        paths |= {"webhooks": "/console/webhooks", "webhook-new": "/console/webhooks/new"}
    if rows == "three":
        ids = [factories.link(sql, alice.id, title=title) for title in TITLES[1:]]
        store([Visited(ids[0], datetime.now(UTC) - timedelta(days=day)) for day in (0, 0, 3, 9)])
        paths = {"home": "/console", "links": "/console/links", "link": f"/console/links/{ids[0]}"}
        paths |= fill_plain(alice, sql) | fill_webhooks(alice, sql, deliver, receiver.url)
    if rows == "many":
        link_id = fill(alice, sql, store)
        page = f"/console/links/{link_id}"
        paths = {"home": "/console", "links": "/console/links", "link": page, "day": f"{page}?period=24h"}
        paths |= {"year": f"{page}?period=12mo", "edit": f"{page}/edit", "delete": f"{page}/delete"}
        for name, row_id in fill_others(alice, sql, store).items():
            page = f"/console/{name}/{row_id}"
            paths |= {name: f"/console/{name}", f"{name}-page": page}
            paths |= {f"{name}-edit": f"{page}/edit"} if name != "campaigns" else {}
    for name, path in paths.items():
        signed_in.open(base + path)
        check(signed_in, f"{rows}-{name}", tmp_path)


def test_forms_with_messages_are_accessible_and_fit(signed_in: Browser, base: str, tmp_path: Path) -> None:
    browser = signed_in
    browser.find("#urls").send_keys("nonsense\nhttps://example.com/a\nexample.org/b\nftp://example.com/")
    browser.click("Create link")
    browser.wait_for_text("2 links created")
    check(browser, "home-refused", tmp_path, "light", "dark")
    browser.open(f"{base}/console/links/new")
    browser.find("#url").send_keys("nonsense")
    browser.find("form.form").submit()
    browser.wait_for_text("Nothing was saved.")
    check(browser, "form-refused", tmp_path, "light", "dark")
    for name, sent in {
        "qrs": "foreground=rgb(200,200,200)&data.link.link=x",
        "bios": "",
        "campaigns": "slug=a+b",
    }.items():
        browser.open(f"{base}/console/{name}/new?{sent}")
        browser.find("form.form").submit()
        browser.wait_for_text("Nothing was saved." if name != "campaigns" else "letters")
        check(browser, f"{name}-refused", tmp_path, "light", "dark")
