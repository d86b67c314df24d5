"""Administrators find links of all users, and see how many are reported and blocked."""

import re

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, seen, signed_in

LINKS = "/console/administration/users/links"


@pytest.fixture
def browser(app: Flask, admin: Client) -> FlaskClient:
    """A browser of the administrator."""
    return signed_in(app, "admin@example.com")


def test_a_link_of_any_user_is_found_by_its_short_url_and_its_target(
    browser: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    domain = factories.domain(sql, bob.id)
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=domain)[0]["host"]
    alice.add("/api/url/add", {"url": "https://example.com/sale/50%_off", "custom": "spring"})
    bob.add("/api/url/add", {"url": "https://example.org/SUMMER", "custom": "spring", "domain": host})
    alices, bobs = f"{BASE_URL}/spring", f"https://{host}/spring"
    for q, found in {
        alices: {alices},
        "spring": {alices, bobs},
        f"{host}/spring": {bobs},
        f"HTTPS://{host}/spring/": {bobs},
        "example.org/summer": {bobs},
        "50%_off": {alices},
        "50_%off": set(),
        "example.": {alices, bobs},
        "ex": set(),
    }.items():
        text = re.sub("<[^>]*>", "", browser.get(LINKS, query_string={"q": q}).text)
        assert {short for short in (alices, bobs) if short in text} == found, q
    page = seen(get(browser, f"{LINKS}?q=spring"))
    assert "alice" in page
    assert "bob" in page
    assert "A text has at least 3 characters." in seen(get(browser, f"{LINKS}?q=ex"))
    assert "Paste a short URL of any domain" in seen(get(browser, LINKS))


def test_the_page_of_a_user_has_the_newest_links_and_leads_to_all(
    browser: FlaskClient, admin: Client, alice: Client, bob: Client, sql: Sql
) -> None:
    for number in range(27):
        factories.link(sql, alice.id, title=f"Number {number}.")
    factories.link(sql, bob.id, title="Of bob")
    page = get(browser, f"/console/administration/users/{alice.id}")
    assert [f"Number {number}." in seen(page) for number in range(27)] == [False, False, *[True] * 25]
    assert f'href="{LINKS}?user={alice.id}"' in page
    assert "All 27 links" in page
    page = seen(get(browser, f"{LINKS}?user={alice.id}&page=2"))
    assert ("Number 0." in page, "Number 2." in page, "Of bob" in page) == (True, False, False)
    assert browser.get(f"{LINKS}?user={2**40}").status_code == 404
    assert "This user has no links." in get(browser, f"{LINKS}?user={admin.id}")


def test_reported_and_blocked_links_are_counted_on_home_and_in_the_menu(
    browser: FlaskClient, console: FlaskClient, alice: Client, sql: Sql
) -> None:
    assert "open reports" not in get(browser, "/console")
    first, second, third = (factories.link(sql, alice.id) for _ in range(3))
    for link_id in (first, first, second):
        factories.report(sql, link_id)
    factories.report(sql, 2**40)  # a link that was deleted meanwhile
    sql("INSERT INTO reports (kind, host) VALUES ('host', 'bad.example') RETURNING 1")
    page = seen(get(browser, "/console"))
    assert "2 links with open reports" in page
    assert "Reports 2 open" in page
    found = get(browser, f"{LINKS}?q=example")
    assert found.count("Block link") == 3
    answer = browser.post(f"/console/administration/reports/{third}/decide", data={"decision": "link"})
    assert answer.status_code == 303
    browser.post(f"/console/administration/reports/{first}/decide", data={"decision": "link"})
    page = seen(get(browser, "/console"))
    assert "1 link with open reports , 2 blocked links" in page
    assert "Reports 1 open 2 blocked links" in page
    assert get(browser, f"{LINKS}?q=example").count("Block link") == 1
    assert "open reports" not in get(console, "/console")
