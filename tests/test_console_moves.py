"""Moves of links to another domain, and of their targets to another host, after a preview."""

import re
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from linkmgr.console import link_changes
from linkmgr.core.fields.urls import normalize_target
from linkmgr.features.bulk import moves
from linkmgr.repository import purge
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import details, get, seen, signed_in
from tests.support.targets import FIREFOX

OLD, NEW = "https://old.example/", "https://new.example/"
SELECTED = "/console/links/selected"


def hidden(page: str) -> dict[str, list[str]]:
    """Return the hidden fields of the question."""
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page):
        fields.setdefault(name, []).append(value)
    return fields


def ask(console: FlaskClient, action: str, query: str = "", **fields: Any) -> str:
    answer = console.post(f"{SELECTED}{query}", data={"action": action} | fields)
    assert answer.status_code == 200, answer.text
    return answer.text


def confirm(console: FlaskClient, action: str, page: str, query: str = "") -> TestResponse:
    return console.post(f"{SELECTED}{query}", data={"action": action} | hidden(page))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_changes, "BATCH", 2)
    monkeypatch.setattr(link_changes, "MAX_BATCHES", 2)


def short_urls(client: Client, ids: list[int]) -> list[str]:
    return [details(client, link_id)["shorturl"] for link_id in ids]


def test_selected_links_move_to_a_domain_after_a_preview_and_taken_ones_stay(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    domain = factories.domain(sql, alice.id)
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=domain)[0]["host"]
    alice.add("/api/url/add", {"url": OLD, "custom": "spring", "domain": host})
    ids = [alice.add("/api/url/add", {"url": OLD, "custom": alias}) for alias in ("spring", "summer", "autumn")]
    other = factories.link(sql, bob.id)
    page = ask(console, "domain", id=[*ids, other], domain=domain)
    assert f"Move 2 links to {host} ?" in seen(page)
    assert f"{BASE_URL}/summer becomes https://{host}/summer" in seen(page)
    assert "1 link stays as it is" in seen(page)
    assert f"{BASE_URL}/spring This alias is already in use." in seen(page)
    assert short_urls(alice, ids) == [f"{BASE_URL}/{alias}" for alias in ("spring", "summer", "autumn")]
    answer = confirm(console, "domain", page)
    assert "2 links moved" in seen(answer.text)
    assert f"{BASE_URL}/spring: This alias is already in use." in seen(answer.text)
    assert short_urls(alice, ids) == [
        f"{BASE_URL}/spring",
        f"https://{host}/summer",
        f"https://{host}/autumn",
    ]
    answer = confirm(console, "domain", ask(console, "domain", id=ids[1:], domain="0"))
    assert answer.status_code == 303
    assert "2 links moved." in get(console, "/console/links")
    assert short_urls(alice, ids[1:]) == [f"{BASE_URL}/summer", f"{BASE_URL}/autumn"]


@pytest.mark.usefixtures("small_batches")
def test_all_links_that_match_move_in_batches(console: FlaskClient, alice: Client, sql: Sql) -> None:
    domain = factories.domain(sql, alice.id)
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=domain)[0]["host"]
    alice.add("/api/url/add", {"url": OLD, "custom": "taken", "domain": host})
    query = "?status=private"
    alice.add("/api/url/add", {"url": OLD, "custom": "taken", "status": "private"})
    ids = [alice.add("/api/url/add", {"url": OLD, "custom": f"a-{n}", "status": "private"}) for n in range(8)]
    page = ask(console, "domain", query, all="1", domain=domain)
    assert "Move 9 links to" in seen(page)
    assert "These are the newest 4 of 9 links: 4 can be moved." in seen(page)
    assert "All links that match: Private" in seen(page)
    later = alice.add("/api/url/add", {"url": OLD, "custom": "later", "status": "private"})
    for done in (4, 8):
        answer = confirm(console, "domain", page, query)
        page = answer.text
        assert (f"{done} moved." in seen(page), "data-continue" in page) == (True, True)
    answer = confirm(console, "domain", page, query)
    assert "8 links moved" in seen(answer.text)
    assert f"{BASE_URL}/taken: This alias is already in use." in seen(answer.text)
    assert short_urls(alice, ids) == [f"https://{host}/a-{n}" for n in range(8)]
    assert short_urls(alice, [later]) == [f"{BASE_URL}/later"]


def test_a_text_is_replaced_in_all_targets_after_a_preview(console: FlaskClient, alice: Client, sql: Sql) -> None:
    sent = {
        "url": f"{OLD}a",
        "expiredurl": f"{OLD}over",
        "geotarget": [{"location": "germany", "link": f"{OLD}de"}],
        "devicetarget": [{"device": "iphone", "link": f"{OLD}phone"}],
        "languagetarget": [{"language": "fr", "link": f"{OLD}fr"}],
        "variants": [{"name": f"{OLD}{n}", "url": f"{OLD}{n}", "weight": n} for n in (1, 2)],
        "rules": [{"when": {"query": [OLD]}, "url": f"{OLD}rule"}],
        "deeplink": {"auto": True, "apple": f"{OLD}apple", "google": "https://play.google.com/store"},
    }
    full, plain, other = (
        alice.add("/api/url/add", body) for body in (sent, {"url": f"{OLD}plain"}, {"url": "https://example.com/"})
    )
    stored = details(alice, full)
    page = ask(console, "replace", id=[full, plain, other], old=OLD, new=NEW)
    assert "Change 2 links" in seen(page)
    assert f"{OLD}plain becomes {NEW}plain" in seen(page)
    assert details(alice, full) == stored
    assert confirm(console, "replace", page).status_code == 303
    assert "2 links changed." in get(console, "/console/links")
    changed = details(alice, full)
    assert changed["longurl"] == f"{NEW}a"
    assert changed["expiredurl"] == f"{NEW}over"
    assert changed["geotarget"] == [{"location": "germany", "link": f"{NEW}de"}]
    assert changed["devicetarget"] == [{"device": "iphone", "link": f"{NEW}phone"}]
    assert changed["languagetarget"] == [{"language": "fr", "link": f"{NEW}fr"}]
    assert changed["variants"] == [{"name": f"{OLD}{n}", "url": f"{NEW}{n}", "weight": n} for n in (1, 2)]
    assert changed["rules"] == [{"when": stored["rules"][0]["when"], "url": f"{NEW}rule"}]
    assert changed["deeplink"] == {**stored["deeplink"], "apple": f"{NEW}apple"}
    assert [details(alice, link_id)["longurl"] for link_id in (plain, other)] == [f"{NEW}plain", "https://example.com/"]
    assert alice.add("/api/url/add", {"url": f"{OLD}plain"}) != plain


def test_targets_that_would_be_invalid_or_blocked_are_named_and_stay(
    console: FlaskClient, alice: Client, sql: Sql
) -> None:
    ids = [alice.add("/api/url/add", {"url": f"{OLD}{path}"}) for path in ("a", "b", "x" * 2020)]
    sql("INSERT INTO reports (kind, host) VALUES ('host', 'bad.example') RETURNING 1")
    domain = factories.domain(sql, alice.id)
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=domain)[0]["host"]
    for new, problem in {
        "https://bad.example/": "The administrators of this service have blocked the host",
        f"https://{host}/": "A link cannot redirect to a branded domain",
        f"{BASE_URL}/": "The target must not point to this service",
        "": "The target must be a URL that begins with http:// or https://",
    }.items():
        page = ask(console, "replace", id=ids, old=OLD, new=new)
        assert seen(page).count(problem) == len(ids)
        assert "3 links stay as they are" in seen(page)
        assert 'class="button" name="action"' not in page
    page = ask(console, "replace", id=ids, old=OLD, new=f"{NEW}{'y' * 100}")
    assert seen(page).count("The target must be at most 2048 characters") == 1
    answer = confirm(console, "replace", page)
    assert "2 links changed" in seen(answer.text)
    assert "1 link stays as it is" in seen(answer.text)
    assert [len(details(alice, link_id)["longurl"]) for link_id in ids] == [121, 121, 2040]


@pytest.mark.usefixtures("small_batches")
def test_targets_of_all_links_that_match_are_replaced(console: FlaskClient, alice: Client) -> None:
    ids = [alice.add("/api/url/add", {"url": f"https://bücher.example/{n}", "status": "private"}) for n in range(7)]
    ids.append(alice.add("/api/url/add", {"url": "https://bücher.example/public"}))
    page = ask(console, "replace", "?status=private", all="1", old="bücher.example", new="buch.example")
    while (answer := confirm(console, "replace", page, "?status=private")).status_code == 200:
        page = answer.text
    assert "7 links changed." in get(console, "/console/links")
    assert [details(alice, link_id)["longurl"] for link_id in ids] == [
        *(f"https://buch.example/{n}" for n in range(7)),
        "https://xn--bcher-kva.example/public",
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"action": "domain", "id": "1", "domain": ""}, "Choose a domain first."),
        ({"action": "domain", "id": "1", "domain": "9"}, "Choose a domain first."),
        ({"action": "domain", "id": "1", "domain": "0"}, "No link is moved by this."),
        ({"action": "replace", "id": "1", "old": "", "new": "x"}, "Choose a text to replace, and another one first."),
        ({"action": "replace", "id": "1", "old": "x", "new": "x"}, "Choose a text to replace, and another one first."),
        ({"action": "replace", "id": "1", "old": "x", "new": "y"}, "No link is changed by this."),
    ],
)
def test_a_form_that_would_move_nothing_says_so(console: FlaskClient, fields: dict[str, str], message: str) -> None:
    assert console.post(SELECTED, data=fields).status_code == 303
    assert message in get(console, "/console/links")


def test_a_link_that_has_changed_since_its_targets_were_read_stays(
    console: FlaskClient, alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    link_id = alice.add("/api/url/add", {"url": f"{OLD}a"})
    page = ask(console, "replace", id=link_id, old=OLD, new=NEW)

    def change_meanwhile(url: str) -> str:
        sql("UPDATE links SET url = 'https://example.com/later' RETURNING 1")
        return normalize_target(url)

    monkeypatch.setattr(moves, "normalize_target", change_meanwhile)
    assert "The link has changed meanwhile." in seen(confirm(console, "replace", page).text)
    assert details(alice, link_id)["longurl"] == "https://example.com/later"


# --- old short URLs


def moved(console: FlaskClient, domain: int, kept: str, **fields: Any) -> None:
    page = ask(console, "domain", domain=domain, **fields)
    answer = console.post(SELECTED, data={"action": "domain"} | hidden(page) | {"kept": kept})
    assert answer.status_code == 303, answer.text


def redirected(client: FlaskClient, url: str) -> str | None:
    scheme, _, rest = url.partition("://")
    host, _, alias = rest.partition("/")
    answer = client.get(f"/{alias}", base_url=f"{scheme}://{host}", headers={"User-Agent": FIREFOX})
    return answer.headers.get("Location") if answer.status_code == 302 else None


def test_an_old_short_url_leads_to_its_link_until_it_is_removed(
    app: Flask, console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    domain = factories.domain(sql, alice.id)
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=domain)[0]["host"]
    link_id = alice.add("/api/url/add", {"url": OLD, "custom": "spring"})
    old, new = f"{BASE_URL}/spring", f"https://{host}/spring"
    moved(console, domain, "infinity", id=link_id)
    visitor = app.test_client()
    assert [redirected(visitor, url) for url in (old, new)] == [OLD, OLD]
    refused = bob.post("/api/url/add", {"url": OLD, "custom": "spring"})
    assert refused.get_json()["code"] == "alias_taken"
    alice.put(f"/api/url/{link_id}/update", {"url": NEW, "custom": "summer"})
    assert redirected(visitor, old) == NEW
    assert f"{new.replace('spring', 'summer')}" in seen(visitor.get("/spring+", base_url=BASE_URL).text)
    page = get(console, f"/console/links/{link_id}")
    assert f"{BASE_URL.split('://')[1]}/spring as long as the link exists" in seen(page)
    moved(console, 0, "30", id=link_id)
    alice.put(f"/api/url/{link_id}/update", {"custom": "spring"})  # its own old one
    assert redirected(visitor, old) == NEW
    page = get(console, f"/console/links/{link_id}")
    assert (f"{host}/summer until" in seen(page), "/spring as long" in seen(page)) == (True, False)
    sql("UPDATE aliases SET until = now() - interval '1 second' WHERE until IS NOT NULL RETURNING 1")
    assert redirected(visitor, f"https://{host}/summer") is None
    assert "Old short URLs" not in get(console, f"/console/links/{link_id}")
    with app.app_context():
        purge.purge()
    assert len(sql("SELECT 1 FROM aliases WHERE until IS NOT NULL")) == 0
    moved(console, domain, "365", id=link_id)
    for client in (signed_in(app, "bob@example.com"), console):
        assert redirected(visitor, old) == NEW
        client.post(f"/console/links/{link_id}/forget", data={"alias": "spring", "domain_id": "0"})
    assert redirected(visitor, old) is None
    assert bob.add("/api/url/add", {"url": OLD, "custom": "spring"})


def test_old_short_urls_go_with_their_link_and_come_back_with_it(
    app: Flask, console: FlaskClient, alice: Client, sql: Sql
) -> None:
    domain = factories.domain(sql, alice.id)
    ids = [alice.add("/api/url/add", {"url": OLD, "custom": alias}) for alias in ("spring", "summer")]
    moved(console, domain, "infinity", id=ids)
    console.post(SELECTED, data={"action": "delete", "id": ids})
    visitor = app.test_client()
    assert redirected(visitor, f"{BASE_URL}/spring") is None
    refused = alice.post("/api/url/add", {"url": OLD, "custom": "spring"}).get_json()
    assert refused["code"] == "alias_taken"
    assert alice.post(f"/api/url/{ids[0]}/restore").status_code == 200
    assert redirected(visitor, f"{BASE_URL}/spring") == OLD
    for link_id in ids:
        assert alice.delete(f"/api/url/{link_id}/delete").status_code == 200
    assert sql("SELECT 1 FROM aliases WHERE link_id IS NOT NULL") == []


def test_a_link_keeps_a_limited_number_of_old_short_urls(console: FlaskClient, alice: Client, sql: Sql) -> None:
    domain = factories.domain(sql, alice.id)
    link_id = alice.add("/api/url/add", {"url": OLD, "custom": "spring"})
    sql(
        """
        INSERT INTO aliases (alias, domain_id, link_id, until)
        SELECT 'old' || n, 0, %(id)s, 'infinity' FROM generate_series(1, 20) n
        RETURNING 1
        """,
        id=link_id,
    )
    page = ask(console, "domain", domain=domain, id=link_id)
    answer = console.post(SELECTED, data={"action": "domain"} | hidden(page) | {"kept": "30"})
    assert "A link keeps at most 20 old short URLs." in seen(answer.text)
    assert short_urls(alice, [link_id]) == [f"{BASE_URL}/spring"]


def test_links_that_move_in_bulk_keep_their_old_short_urls(app: Flask, alice: Client, sql: Sql) -> None:
    domain = factories.domain(sql, alice.id)
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=domain)[0]["host"]
    ids = [alice.add("/api/url/add", {"url": OLD, "custom": alias}) for alias in ("spring", "summer")]
    body = {"ids": ids, "data": {"domain": host}, "kept_until": "2999-12-31"}
    assert alice.put("/api/urls/bulk", body).get_json()["updated"] == 2
    visitor = app.test_client()
    for alias in ("spring", "summer"):
        assert redirected(visitor, f"{BASE_URL}/{alias}") == redirected(visitor, f"https://{host}/{alias}") == OLD
    assert [str(row["until"])[:10] for row in sql("SELECT until FROM aliases WHERE domain_id = 0")] == [
        "2999-12-31"
    ] * 2
    assert alice.put("/api/urls/bulk", body | {"data": {"title": "New"}}).get_json()["updated"] == 2
    assert len(sql("SELECT 1 FROM aliases WHERE until IS NOT NULL")) == 2
    assert alice.put("/api/urls/bulk", body | {"kept_until": "soon"}).status_code == 400


@pytest.mark.parametrize("name", ["own_only", "domains"])
def test_a_restricted_key_moves_links_and_keeps_their_old_short_urls(
    app: Flask, alice: Client, sql: Sql, name: str
) -> None:
    ids = [factories.domain(sql, alice.id) for _ in range(2)]
    old, new = (row["domain"] for row in sql("SELECT domain FROM domains ORDER BY id"))
    limit = {"own_only": True, "domains": ids}[name]
    added = alice.post("/api/key/add", {"name": "Program", "scopes": ["*"], name: limit}).get_json()
    program = Client(app.test_client(), added["key"])
    link = program.add("/api/url/add", {"url": OLD, "custom": "spring", "domain": old})
    body = {"ids": [link], "data": {"domain": new}, "kept_until": "2999-12-31"}
    answer = program.put("/api/urls/bulk", body)
    assert (answer.status_code, answer.get_json().get("updated")) == (200, 1), answer.text
    visitor = app.test_client()
    assert redirected(visitor, f"{old}/spring") == redirected(visitor, f"{new}/spring") == OLD
