"""The frequent tasks in the console, in Chromium, with the number of clicks, texts and keys that each takes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from flask import Flask
from selenium.webdriver.common.keys import Keys

from tests.conftest import Client
from tests.support import factories
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.fit import faults
from tests.support.imported import aliases, sale, shlink
from tests.support.pages import PASSWORD, visit
from tests.support.person import Person
from tests.support.receivers import Receiver
from tests.support.sessions import sign_in
from tests.support.visited import Store, Visited

pytestmark = pytest.mark.browser


@pytest.fixture
def person(signed_in: Browser) -> Person:
    return Person(signed_in)


@pytest.fixture
def downloads(signed_in: Browser, tmp_path: Path) -> Path:
    """The folder of the files that the browser downloads."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    signed_in.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    return folder


def downloaded(browser: Browser, folder: Path, pattern: str) -> Path:
    """Wait for a whole file. Chromium gives it its name when it is complete."""
    browser.wait_until(lambda: bool(list(folder.glob(pattern))))
    return next(folder.glob(pattern))


def test_three_urls_at_once(person: Person, alice: Client) -> None:
    person.browser.wait_for_focus("urls")
    person.browser.driver.execute_script(
        "document.activeElement.value = 'https://example.com/a\\nhttps://example.com/b\\nexample.org'"
    )
    person.steps += 1  # pasted
    person.press(Keys.ENTER)
    person.browser.wait_for_text("3 links created")
    assert person.steps <= 2
    person.browser.find("[data-copy=made-all]").click()
    person.browser.wait_for_text("Copied")
    assert alice.get("/api/urls").get_json()["data"]["result"] == 3


def test_three_links_on_the_default_domain_take_a_paste_and_enter_each(person: Person, alice: Client) -> None:
    alice.add("/api/domain/add", {"domain": "https://go.example.com"})
    alice.put("/api/account/update", {"domain": "https://go.example.com"})
    person.browser.driver.refresh()
    for number in range(3):
        person.browser.wait_for_focus("urls")
        person.press(f"https://example.com/{number}")
        person.press(Keys.ENTER)
        person.browser.wait_for_text(f"example.com/{number}")
    assert person.steps == 6
    links = alice.get("/api/urls").get_json()["data"]["urls"]
    assert [link["shorturl"].startswith("https://go.example.com/") for link in links] == [True] * 3


def test_a_link_with_the_parameters_of_a_template(person: Person, alice: Client) -> None:
    template = alice.add("/api/utm/add", {"name": "Letter", "utm_source": "letter", "utm_medium": "email"})
    person.click("New link with options", "/console/links/new")
    person.browser.wait_for_focus("url")
    person.browser.press("https://example.com")  # pasted, which is no click
    person.steps += 1  # opens the list of templates
    person.choose("#utm", str(template))
    person.browser.wait_for_text("Visitors go to https://example.com?utm_source=letter&utm_medium=email")
    person.click("Create link")
    person.browser.wait_for_text("Link created.")
    assert person.steps <= 4
    [link] = alice.get("/api/urls").get_json()["data"]["urls"]
    added = alice.get(f"/api/url/{link['id']}").get_json()["details"]["parameters"]
    assert added == [{"name": "utm_source", "value": "letter"}, {"name": "utm_medium", "value": "email"}]


def test_a_link_with_alias_password_expiry_and_device_target(person: Person, alice: Client) -> None:
    person.click("New link with options", "/console/links/new")
    person.browser.wait_for_focus("url")
    person.press("https://example.com/page")
    person.fill("#custom", "summer")
    person.mark("details:has(#password) > summary")
    person.fill("#password", "secret")
    person.set("#expiry", "2030-12-31T23:59")
    person.mark("details:has([name='devicetarget.device']) > summary")
    person.browser.run("document.querySelector('fieldset:has([name^=devicetarget]) [data-add-row]').click()")
    assert len(person.browser.all("[name='devicetarget.device']")) == 2
    person.choose("[name='devicetarget.device']", "iphone")
    person.fill("[name='devicetarget.link']", "https://example.com/app")
    person.press(Keys.ENTER)
    person.browser.wait_for_text("Link created.")
    assert person.steps <= 10
    [link] = alice.get("/api/urls").get_json()["data"]["urls"]
    details = alice.get(f"/api/url/{link['id']}").get_json()["details"]
    assert (details["alias"], details["haspassword"], details["expiry"]) == ("summer", True, "2030-12-31 23:59:00")
    assert details["devicetarget"] == [{"device": "iphone", "link": "https://example.com/app"}]
    assert {"password", "1 device target"} <= {badge.text for badge in person.browser.all(".options .badge")}


def test_a_user_is_created_and_signed_in(browser: Browser, base: str, app: Flask, admin: Client) -> None:
    sign_in(browser, base, app, admin.id)
    person = Person(browser)
    person.click("Users", "/console/administration/users")
    person.click("New user", "/console/administration/users/new")
    browser.wait_for_focus("username")
    person.press("carol")
    person.fill("#email", "carol@example.com")
    browser.find("#current_password").send_keys(PASSWORD)  # no step: password managers do it
    person.press(Keys.ENTER)
    browser.wait_for_text("This link signs carol in")
    person.click("Copy sign-in link")
    assert person.steps <= 6
    link = browser.find("#login-link").text
    browser.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    browser.open(link)
    browser.wait_for("/account")
    browser.wait_for_focus("password")
    assert faults(browser, "best-practice") == []
    browser.open(link.split("/login")[0] + "/console/links")
    browser.wait_for_focus("password")
    browser.press("correct horse", Keys.ENTER)
    browser.wait_for("/console")


def test_a_scoped_key(person: Person, alice: Client) -> None:
    person.click("API keys", "/console/keys")
    person.click("Create your first API key", "/console/keys/new")
    person.browser.wait_for_focus("name")
    person.press("Shop")
    person.mark("[value='links:create']")
    person.browser.find("#current_password").send_keys(PASSWORD)  # no step: password managers do it
    person.mark(".actions .button")
    person.browser.wait_for_text("Your new API key")
    assert person.steps <= 5
    assert faults(person.browser, "best-practice") == []
    person.browser.find("[data-copy=secret]").click()
    person.browser.wait_for_text("Copied")
    client = Client(alice.http, person.browser.find("#secret").text)
    client.add("/api/url/add", {"url": "https://example.com/"})
    assert client.get("/api/urls").status_code == 403
    person.browser.click("I have copied it")
    person.browser.wait_for("/console/keys")


def test_a_webhook_with_its_first_delivery(person: Person, receiver: Receiver, deliver: Callable[[], None]) -> None:
    person.click("Webhooks", "/console/webhooks")
    person.click("Create your first webhook", "/console/webhooks/new")
    person.browser.wait_for_focus("name")
    person.press("Shop")
    person.fill("#url", receiver.url)
    person.press(Keys.ENTER)
    person.browser.wait_for_text("It is shown only now.")
    secret = person.browser.find("#secret").text
    person.click("Send a test event")
    person.browser.wait_for_text("A test event will be delivered within seconds.")
    deliver()
    person.browser.wait_until(lambda: person.browser.find(".deliveries .badge").text == "delivered")  # without a reload
    assert person.browser.find("#secret").text == secret
    assert person.steps <= 6


def test_30_links_are_deleted_and_brought_back(person: Person, alice: Client, sql: Sql) -> None:
    for _ in range(30):
        factories.link(sql, alice.id)
    person.click("Links", "/console/links")
    person.mark("[href*='per=50']")
    person.browser.wait_for_text("Select all 30")
    person.mark("[data-select-all]")
    person.browser.wait_for_text("30 selected")
    person.mark("[name=action][value=ask]")
    person.browser.wait_for_text("Delete 30 links?")
    person.mark("[name=action][value=delete]")
    person.browser.wait_for_text("30 links deleted.")
    assert person.steps <= 5
    person.click("Undo")
    person.browser.wait_for_text("30 links restored.")


def test_40_links_move_to_a_new_domain(person: Person, alice: Client, sql: Sql) -> None:
    ids = [factories.link(sql, alice.id) for _ in range(40)]
    alice.add("/api/domain/add", {"domain": "https://go.example.com"})
    person.click("Links", "/console/links")
    person.mark("[data-select-all=all]")
    person.click("More")
    person.mark("[name=action][value=domain]")
    person.browser.wait_for_text("Move 40 links")
    assert faults(person.browser, "best-practice") == []
    person.mark("[name=action][value=domain]")
    person.browser.wait_for_text("40 links moved.")
    assert person.steps <= 5
    listed = alice.get("/api/urls?limit=50").get_json()["data"]["urls"]
    assert {link["domain"] for link in listed} == {"https://go.example.com"}
    person.browser.open(f"{person.browser.driver.current_url}/{ids[0]}")
    person.browser.wait_for_text("Old short URLs")
    assert faults(person.browser, "best-practice") == []


def test_an_administrator_finds_a_link_and_blocks_it(
    *, browser: Browser, base: str, app: Flask, admin: Client, alice: Client, sql: Sql
) -> None:
    link_id = factories.link(sql, alice.id, url="https://bad.example.org/phish")
    factories.report(sql, link_id)
    sign_in(browser, base, app, admin.id)
    person = Person(browser)
    person.click("1 link with open reports", "/console/administration/reports")
    person.fill("[aria-label='Search the links of all users']", f"bad.example.org{Keys.ENTER}")
    browser.wait_for("/console/administration/users/links")
    assert faults(browser, "best-practice") == []
    person.mark("[name=decision][value=link]")
    browser.wait_for_text("The reports have been decided.")
    assert person.steps <= 3
    assert alice.get(f"/api/url/{link_id}").get_json()["details"]["blocked"]


def test_an_import_with_wrong_rows_is_mended(
    person: Person, alice: Client, sql: Sql, tmp_path: Path, downloads: Path
) -> None:
    file = tmp_path / "links.csv"
    file.write_bytes(shlink(sale("right"), sale("wrong", "ftp://example.com/a")))
    person.click("Import and export", "/console/imports")
    person.fill("#file", str(file))
    person.browser.wait_for_text("These are the first rows")
    assert faults(person.browser, "best-practice") == []
    person.click("Import all rows")
    person.browser.wait_for_text("Rows that failed")
    assert faults(person.browser, "best-practice") == []
    person.click("Download these rows as CSV")
    failed = downloaded(person.browser, downloads, "*.csv")
    failed.write_text(failed.read_text().replace("ftp:", "https:"))
    person.fill("#file", str(failed))
    person.browser.wait_for_text("These are the first rows")
    person.click("Import all rows")
    person.browser.wait_until(lambda: len(aliases(sql, alice)) == 2)
    assert person.steps <= 7
    assert aliases(sql, alice) == ["right", "wrong"]
    file.write_text("Label;Where\nsummer;https://example.com/sale\n")
    person.click("Import and export", "/console/imports")
    person.fill("#file", str(file))
    person.browser.wait_for_text("Choose the column of the target.")
    assert faults(person.browser, "best-practice") == []


# --- questions that people ask every week


def first_row(browser: Browser) -> str:
    return browser.find(".bars tbody tr, .rows li").text.replace("\n", " ")


def test_the_link_that_lost_most_is_one_click_from_home(person: Person, alice: Client, sql: Sql, store: Store) -> None:
    steady, loser = (factories.link(sql, alice.id, title=title) for title in ("Steady", "Loser"))
    [alias] = sql("SELECT alias FROM links WHERE id = %(id)s", id=loser)
    store([visit(steady, days) for days in (0, 40, 41, 70)] + [visit(loser, 35) for _ in range(9)])
    person.browser.click("Home")
    person.click("Lost most: top links and qr codes", "/console/statistics")
    assert alias["alias"] in first_row(person.browser)
    assert "\N{MINUS SIGN}9" in first_row(person.browser)
    assert person.steps == 1


def test_germany_is_compared_with_the_week_before_in_one_click(
    person: Person, alice: Client, sql: Sql, store: Store
) -> None:
    link = factories.link(sql, alice.id)
    store([visit(link, days) for days in (0, 0, 0, 8, 40)] + [visit(link, 9, country="Peru")])
    person.browser.click("Statistics")
    person.browser.wait_for("/console/statistics")
    person.click("7d")
    person.browser.wait_for_text("3 visits in the last 7 days, 2 before")
    assert "Germany (DE) 3 +2" in first_row(person.browser)
    assert person.steps == 1
    person.click("Germany (DE)")  # filters, keeps the comparison, and goes on to the next dimension
    person.browser.wait_for_text("3 visits, 1 unique visitor in the last 7 days, 1 before")
    assert "t.co 3 1 +2" in first_row(person.browser)


def test_the_best_campaign_of_this_month_is_one_click_from_home(
    person: Person, alice: Client, sql: Sql, store: Store
) -> None:
    for clicks in (3, 1):
        link = factories.link(sql, alice.id)
        factories.assign(sql, factories.campaign(sql, alice.id), [link])
        store([visit(link) for _ in range(clicks)])
    person.browser.click("Home")
    person.click("Best campaigns this month", "/console/campaigns")
    person.browser.wait_until(lambda: "3 clicks" in first_row(person.browser))
    assert person.steps == 1
    person.browser.find(".row-clicks a").click()
    person.browser.wait_for_text("3 clicks, 1 unique visitor in the current month")


def test_a_delete_is_undone_in_two_clicks(person: Person, alice: Client, sql: Sql) -> None:
    link = factories.link(sql, alice.id)
    person.browser.click("Links")
    person.browser.wait_for("/console/links")
    person.browser.find("[name=id]").click()
    person.browser.find("[name=action][value=ask]").click()
    person.browser.find("[name=action][value=delete]").click()
    person.browser.wait_for_text("1 link deleted.")
    person.click("Undo")
    person.browser.wait_for_text("1 link restored.")
    assert person.steps <= 2
    assert alice.get(f"/api/url/{link}").status_code == 200


def test_a_delete_of_a_qr_code_is_undone_in_one_click_and_found_later_in_three(
    person: Person, base: str, alice: Client, sql: Sql
) -> None:
    code = factories.qr(sql, alice.id)
    for undo in (True, False):
        person.browser.open(f"{base}/console/qrs/{code}")
        person.browser.click("Delete")
        person.browser.click("Delete QR code")
        person.browser.wait_for_text("QR code deleted.")
        before = person.steps
        if undo:
            person.click("Undo")
        else:
            person.browser.open(f"{base}/console/qrs")
            person.click("Bin 1", "/console/qrs/bin")
            person.mark("[name=id]")
            person.click("Restore")
        person.browser.wait_for_text("1 QR code restored.")
        assert person.steps - before <= (1 if undo else 3)
        assert alice.get(f"/api/qr/{code}").status_code == 200


def test_a_link_is_found_by_its_target_in_two_steps(person: Person, alice: Client, sql: Sql) -> None:
    for number in range(60):
        factories.link(sql, alice.id, url=f"https://shop.example.com/garden/{number}", title=f"Product {number}")
    person.click("Links", "/console/links")
    person.fill("[name=q]", "shop.example.com/garden/7")
    person.browser.wait_until(lambda: person.browser.find("#total").text == "1")
    assert "Product 7" in first_row(person.browser)
    assert person.steps == 2


def test_the_variant_that_won_is_seen_after_two_clicks_without_scrolling(
    person: Person, alice: Client, sql: Sql, store: Store
) -> None:
    variants = [{"name": name, "url": f"https://example.com/{name}", "weight": 1} for name in ("Blue", "Green")]
    body = {"url": "https://example.com/", "title": "Which button?", "variants": variants}
    link = alice.add("/api/url/add", body)
    now = datetime.now(UTC)
    store(Visited(link, now - timedelta(hours=n), b"%d" % n, variant=("Blue", "Green")[n % 2]) for n in range(400))
    counts = '{"1": {"Blue": 200, "Green": 200}}'
    sql("UPDATE totals SET experiments = %(all)s WHERE tracked_id = %(id)s RETURNING 1", all=counts, id=link)
    for name, number in {"Blue": 20, "Green": 90}.items():
        for _ in range(number):
            factories.conversion(sql, alice.id, link=link, labels=f'{{"variant": "{name}"}}')
    person.browser.click("Home")
    person.browser.wait_for_text("Which button?")
    person.click("Which button?", f"/console/links/{link}")
    person.browser.wait_for_text("Green is better:")
    assert person.steps <= 2
    place = "return document.querySelector('#conversions strong').getBoundingClientRect().bottom <= innerHeight"
    assert person.browser.run(place)


def test_an_administrator_blocks_a_reported_link_in_three_clicks(
    *, browser: Browser, base: str, app: Flask, admin: Client, bob: Client, sql: Sql
) -> None:
    link = factories.link(sql, bob.id)
    factories.report(sql, link)
    sign_in(browser, base, app, admin.id)
    person = Person(browser)
    browser.find(".menu [href='/console/administration/reports']").click()
    person.steps += 1
    browser.wait_for_text("1 report (spam)")
    browser.find("[name=decision][value=link]").click()
    person.steps += 1
    browser.wait_for_text("There are no open reports.")
    assert person.steps <= 3
    assert sql("SELECT id FROM links WHERE blocked IS NOT NULL") == [{"id": link}]
