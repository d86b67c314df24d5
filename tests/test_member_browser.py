"""Members in Chromium: accessible pages, and two tabs with two accounts."""

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support import factories
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.fit import faults
from tests.support.receivers import Deliver
from tests.support.sessions import sign_in

pytestmark = pytest.mark.browser


def test_members_see_accessible_pages_and_a_tab_of_another_account_changes_nothing(
    *, browser: Browser, base: str, app: Flask, alice: Client, bob: Client, sql: Sql, deliver: Deliver
) -> None:
    factories.member(sql, alice.id, role="viewer", member_id=bob.id)
    long = "a-very-long-address-of-a-person@a-long-name-of-a-subdomain.example.com"
    url = alice.post("/api/member/add", {"email": long, "role": "editor"}).get_json()["url"]
    invitation = "/account" + url.partition("/account")[2]
    link = alice.add("/api/url/add", {"url": "https://example.com/page"})
    alice.put(f"/api/url/{link}/update", {"title": "x" * 200})
    deliver()
    found: list[str] = []

    def check(*paths: str) -> None:
        for path in paths:
            browser.open(base + path)
            found.extend(faults(browser, "best-practice"))

    check(invitation)
    sign_in(browser, base, app, bob.id)
    check(invitation)
    browser.open(f"{base}/console/channels/new")
    first = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    browser.size(1280, 900)
    browser.open(f"{base}/console")
    browser.find(".accounts summary").click()
    browser.find(".accounts button").click()
    browser.wait_for_text("You can look at this, but not change it")
    check("/console", f"/console/links/{link}", "/console/members", "/console/members/activity", "/console/keys")
    browser.driver.close()
    browser.driver.switch_to.window(first)
    browser.find("#name").send_keys("Of bob")
    browser.find("form.form").submit()
    browser.wait_for_text("You have switched to another account since you opened this page.")
    assert found == []
    assert [user.get("/api/channels").get_json()["data"]["result"] for user in (alice, bob)] == [0, 0]
    sql("UPDATE members SET role = 'owner' WHERE member_id IS NOT NULL RETURNING 1")
    browser.open(f"{base}/console/channels/new")
    browser.find("#name").send_keys("Of alice")
    browser.find("form.form").submit()
    browser.wait_for_text("Of alice")
    assert [user.get("/api/channels").get_json()["data"]["result"] for user in (alice, bob)] == [1, 0]
