"""The bin: links that are deleted, and can be restored for 30 days."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.console import binned as bin_page
from linkmgr.repository import purge
from tests.conftest import BASE_URL, Client
from tests.support import factories, pages
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.keyring import Make, branded, code
from tests.support.pages import words
from tests.support.races import at_once
from tests.support.receivers import Deliver

Jobs = Callable[[], None]


def to_bin(client: Client, link_id: int) -> None:
    assert code(client.delete(f"/api/url/{link_id}/delete?bin=1")) == (200, "")


def restore(client: Client, link_id: int) -> tuple[int, str]:
    return code(client.post(f"/api/url/{link_id}/restore"))


def in_bin(client: Client) -> list[int]:
    data = client.get("/api/urls?bin=1").get_json()["data"]
    assert data["result"] == len(data["urls"])
    return [link["id"] for link in data["urls"]]


def full(client: Client, sql: Sql) -> tuple[dict[str, Any], dict[str, int]]:
    """Add a link with members of every kind and two visits, and return its record and the rows that it refers to."""
    rows = {kind: factories.ALL[kind](sql, client.id) for kind in ("campaign", "channel", "pixel", "splash")}
    link = client.add(
        "/api/url/add",
        {"url": "https://example.com/page", "custom": "summer", "domain": branded(sql, client)[1], "password": "secret",
         "expiry": "2030-12-31 23:59:59", "geotarget": [{"location": "Germany", "link": "https://example.de/"}],
         "parameters": [{"name": "utm_source", "value": "a"}], "metatitle": "Sale", "type": str(rows["splash"]),
         "campaign": rows["campaign"], "channel": [rows["channel"]], "pixels": [rows["pixel"]]},
    )  # fmt: skip
    for _ in range(2):
        factories.visit(sql, link)
    return client.get(f"/api/url/{link}").get_json(), rows


def seen(client: Client, link: dict[str, Any], channel: int) -> list[Any]:
    """Return what the API and visitors see of a link: single, in lists, counts and statistics, and at its short URL."""
    host, _, alias = link["details"]["shorturl"].split("://")[1].partition("/")
    paths = (f"url/{link['id']}", "urls", f"urls?short={link['details']['shorturl']}", f"channel/{channel}",
             "urls?q=summer", f"stats?by=target&ids={link['id']}", "stats?by=target&period=all")  # fmt: skip
    answers = [client.get(f"/api/{path}").get_json() | {"request_id": ""} for path in paths]
    page = client.http.get(f"/{alias}", headers={"Host": host})
    return [*answers, (page.status_code, re.sub(r'nonce="[^"]+"|[0-9a-f]{32}', "", page.text))]


def test_a_link_in_the_bin_is_like_a_deleted_one_and_comes_back_as_it_was(
    alice: Client, bob: Client, sql: Sql, run_jobs: Jobs
) -> None:
    link, rows = full(alice, sql)
    link_id, before = link["id"], seen(alice, link, rows["channel"])
    assert alice.delete(f"/api/url/{link_id}/delete?bin=2").status_code == 400
    to_bin(alice, link_id)
    run_jobs()
    gone = seen(alice, link, rows["channel"])
    assert code(alice.delete(f"/api/url/{link_id}/delete?bin=1")) == (404, "missing")
    assert (in_bin(alice), in_bin(bob)) == ([link_id], [])
    assert code(alice.get("/api/urls?bin=1&after=99")) == (400, "invalid")
    again = {"url": "https://example.com/", "custom": "summer", "domain": link["details"]["domain"]}
    assert code(alice.post("/api/url/add", again)) == (400, "alias_taken")
    bulk = alice.post("/api/urls/bulk", {"urls": [again]}).get_json()
    assert bulk["results"][0]["code"] == "alias_taken"
    [domain] = alice.get("/api/domains").get_json()["data"]["domains"]
    assert code(alice.delete(f"/api/domain/{domain['id']}/delete")) == (400, "domain_in_use")
    assert restore(bob, link_id) == (404, "missing")

    restored = alice.post(f"/api/url/{link_id}/restore")
    assert restored.get_json()["details"] == link["details"]
    assert restored.headers["ETag"] == alice.get(f"/api/url/{link_id}").headers["ETag"]
    assert seen(alice, link, rows["channel"]) == before
    assert (restore(alice, link_id), in_bin(alice)) == ((404, "missing"), [])

    alice.delete(f"/api/url/{link_id}/delete")
    run_jobs()
    assert seen(alice, link, rows["channel"]) == gone


def test_an_alias_that_a_link_in_the_own_bin_has_says_so(alice: Client, bob: Client, sql: Sql) -> None:
    new = {"url": "https://example.com/", "custom": "summer"}
    binned, other = alice.add("/api/url/add", new), factories.link(sql, alice.id)
    to_bin(alice, binned)
    page = {"name": "Me", "alias": "summer"}
    bio = factories.bio(sql, alice.id)

    def refusals(client: Client) -> set[tuple[str, str]]:
        answers = [
            client.post("/api/url/add", new).get_json(),
            client.post("/api/urls/bulk", {"urls": [new]}).get_json()["results"][0],
            client.post("/api/bio/add", page).get_json(),
        ]
        return {(answer["code"], answer["message"]) for answer in answers}

    said = "A link in your bin has this alias. Restore it or delete it forever, or choose another alias."
    assert refusals(alice) == {("alias_taken", said)}
    assert refusals(bob) == {("alias_taken", "This alias is already in use. Choose another one.")}
    changes = [
        alice.put(f"/api/url/{other}/update", {"custom": "summer"}).get_json(),
        alice.put("/api/urls/bulk", {"ids": [other], "data": {"custom": "summer"}}).get_json()["results"][0],
        alice.put(f"/api/bio/{bio}/update", page).get_json(),
    ]
    assert {(answer["code"], answer["message"]) for answer in changes} == {("alias_taken", said)}
    assert alice.delete(f"/api/url/{binned}/delete").status_code == 200
    assert alice.put(f"/api/url/{other}/update", {"custom": "summer"}).status_code == 200


def test_many_links_are_put_into_the_bin_at_once(alice: Client, bob: Client, sql: Sql) -> None:
    ids, foreign = [factories.link(sql, alice.id) for _ in range(3)], factories.link(sql, bob.id)
    path = "/api/urls/bulk/delete?bin=1"
    refused = alice.post(path, {"ids": [*ids, foreign], "atomic": True})
    assert (code(refused), in_bin(alice)) == ((400, "bulk_refused"), [])
    assert code(alice.post("/api/urls/bulk/delete?bin=2", {"ids": ids})) == (400, "invalid")
    answer = alice.post(path, {"ids": [*ids[:2], foreign, ids[0]]}).get_json()
    assert (answer["deleted"], answer["failed"], answer.get("warnings")) == (3, 1, None)
    assert [result.get("code") for result in answer["results"]] == [None, None, "missing", None]
    assert sorted(in_bin(alice)) == ids[:2]
    assert alice.get(f"/api/url/{foreign}").status_code == 404
    assert bob.get(f"/api/url/{foreign}").status_code == 200
    assert restore(alice, ids[0]) == (200, "")
    assert alice.post("/api/urls/bulk/delete", {"ids": ids[1:]}).get_json()["deleted"] == 1  # one is in the bin


def test_a_link_comes_back_without_what_was_deleted_meanwhile(alice: Client, sql: Sql, run_jobs: Jobs) -> None:
    link, rows = full(alice, sql)
    to_bin(alice, link["id"])
    for kind, row_id in rows.items():
        assert alice.delete(f"/api/{kind}/{row_id}/delete").status_code == 200
    run_jobs()
    details = alice.post(f"/api/url/{link['id']}/restore").get_json()["details"]
    changed = {name for name in details if details[name] != link["details"][name]}
    assert changed <= {"campaign", "channel", "pixels", "type"}
    assert details["type"] == "direct"
    assert (details["campaign"], details["pixels"]) == (None, [])


def test_a_new_link_of_the_same_url_and_a_restored_one_are_two(alice: Client) -> None:
    first = alice.add("/api/url/add", {"url": "https://example.com/page"})
    to_bin(alice, first)
    second = alice.add("/api/url/add", {"url": "https://example.com/page"})
    assert restore(alice, first) == (200, "")
    assert alice.add("/api/url/add", {"url": "https://example.com/page"}) == second != first


def test_links_in_the_bin_leave_room_and_a_restore_needs_it(on_plan: Callable[..., Client], sql: Sql) -> None:
    carol = on_plan(links=1)
    first = factories.link(sql, carol.id)
    to_bin(carol, first)
    second = factories.link(sql, carol.id)
    refused = carol.post(f"/api/url/{first}/restore")
    assert (code(refused), "limit of 1 links" in refused.text) == ((400, "plan_limit"), True)
    assert in_bin(carol) == [first]
    assert code(carol.delete(f"/api/url/{second}/delete")) == (200, "")
    assert restore(carol, first) == (200, "")
    to_bin(carol, first)
    third = factories.link(sql, carol.id)
    to_bin(carol, third)
    assert in_bin(carol) == [third]


def test_of_restores_at_once_one_wins_and_no_link_is_lost_or_doubled(app: Flask, alice: Client, sql: Sql) -> None:
    link = factories.link(sql, alice.id)
    paths = {"POST": f"/api/url/{link}/restore", "DELETE": f"/api/url/{link}/delete?bin=1"}

    def statuses(*methods: str) -> list[int]:
        headers = {"Authorization": f"Bearer {alice.key}"}
        calls = [(method, paths[method]) for method in methods * 4]
        send = app.test_client().open
        return at_once(len(calls), lambda n: send(calls[n][1], method=calls[n][0], headers=headers).status_code)

    for _ in range(5):
        alice.delete(paths["DELETE"])
        assert sorted(statuses("POST")) == [200, 404, 404, 404]
        assert sorted(statuses("DELETE")) == [200, 404, 404, 404]
        assert set(statuses("POST", "DELETE")) <= {200, 404}
        assert (in_bin(alice) == [link]) == (alice.get(f"/api/url/{link}").status_code == 404)
        assert sql("SELECT count(*) AS n FROM aliases WHERE link_id = %(id)s", id=link) == [{"n": 1}]


def test_after_30_days_or_a_final_delete_nothing_is_left(app: Flask, alice: Client, sql: Sql, run_jobs: Jobs) -> None:
    old, final = full(alice, sql)[0]["id"], factories.link(sql, alice.id)
    for link in (old, final):
        to_bin(alice, link)
    sql("UPDATE binned_links SET binned = now() - interval '29 days 23 hours' WHERE id = %(id)s RETURNING 1", id=old)
    with app.app_context():
        purge.purge()
        assert in_bin(alice) == [final, old]
        assert sql("SELECT count(*) AS n FROM visits") == [{"n": 2}]
        assert alice.delete(f"/api/url/{final}/delete").status_code == 200
        sql("UPDATE binned_links SET binned = now() - interval '30 days 1 hour' RETURNING 1")
        purge.purge()
    run_jobs()
    left = sql(
        "SELECT (SELECT count(*) FROM visits) + (SELECT count(*) FROM aliases) + count(*) AS n FROM binned_links"
    )
    assert left == [{"n": 0}]
    assert in_bin(alice) == []
    assert [restore(alice, link) for link in (old, final)] == [(404, "missing")] * 2


def test_the_aliases_of_a_deleted_user_are_free_also_those_in_the_bin(
    admin: Client, alice: Client, bob: Client, run_jobs: Jobs
) -> None:
    for alias in ("one", "two"):
        to_bin(alice, alice.add("/api/url/add", {"url": "https://example.com/", "custom": alias}))
    assert admin.delete(f"/api/user/{alice.id}/delete").status_code == 200
    bob.add("/api/url/add", {"url": "https://example.com/", "custom": "one"})
    run_jobs()
    bob.add("/api/url/add", {"url": "https://example.com/", "custom": "two"})


def test_a_restricted_key_bins_and_restores_its_links_only(alice: Client, sql: Sql, make_restricted: Make) -> None:
    domain_id, domain = branded(sql, alice)
    other = factories.link(sql, alice.id)
    to_bin(alice, other)
    for limits in ({"own_only": True}, {"domains": [domain_id]}):
        key = make_restricted(alice, **limits)
        own = key.add("/api/url/add", {"url": f"https://example.com/{len(limits)}", "domain": domain})
        to_bin(key, own)
        assert in_bin(key) == [own]
        assert restore(key, other) == (404, "missing")
        assert code(key.delete(f"/api/url/{other}/delete")) == (404, "missing")
        assert restore(key, own) == (200, "")
        assert in_bin(key) == []
    assert in_bin(alice) == [other]


def test_receivers_learn_that_a_link_is_deleted_and_created_again(alice: Client, deliver: Deliver) -> None:
    alice.add("/api/webhooks", {"name": "Hook", "events": ["*"]})
    link = alice.add("/api/url/add", {"url": "https://example.com/", "custom": "summer"})
    to_bin(alice, link)
    deliver()
    restore(alice, link)
    deliver()
    events = alice.get("/api/events").get_json()["data"]["events"]
    assert [event["type"] for event in events if event["type"] != "link.created"] == ["link.deleted"]
    assert events[-1]["type"] == "link.created"
    assert events[-1]["data"]["shorturl"] == f"{BASE_URL}/summer"


# --- the console


def pressed(console: FlaskClient, ids: list[int], action: str, **fields: str) -> str:
    answer = console.post("/console/links/bin", data={"id": ids, "action": action, **fields}, follow_redirects=True)
    assert answer.status_code == 200
    return words(answer.text)


def test_what_is_deleted_in_the_console_is_undone_by_the_button_in_the_message(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    one, two, other = (factories.link(sql, client.id) for client in (alice, alice, bob))
    assert "You can restore it for 30 days." in console.get(f"/console/links/{one}/delete").text
    page = console.post(f"/console/links/{one}/delete", follow_redirects=True).text
    assert "Link deleted." in page
    assert re.findall('action="([^"]+)" role="status">|name="id" value="([^"]+)"', page)[:2] == [
        ("/console/links/bin", ""), ("", str(one))
    ]  # fmt: skip
    assert "1 link restored." in pressed(console, [one], "restore")
    sent = {"action": "delete", "id": [one, two, other]}
    page = console.post("/console/links/selected", data=sent, follow_redirects=True).text
    assert "2 links deleted." in page
    assert "2 links restored." in pressed(console, [one, two, other], "restore")
    assert "These links are not in the bin any more." in pressed(console, [one, two, other], "restore")
    assert {link["id"] for link in alice.get("/api/urls").get_json()["data"]["urls"]} == {one, two}
    assert console.post("/console/links/bin", data={"id": one, "action": "evil"}).status_code == 400


def test_the_bin_restores_and_deletes_some_or_all(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bin_page, "BATCH", 7)
    ids = [factories.link(sql, alice.id, title=f"Title {n}") for n in range(27)]
    assert "The bin is empty." in console.get("/console/links/bin").text
    for link in ids:
        to_bin(alice, link)
    to_bin(bob, factories.link(sql, bob.id))
    head = console.get("/console/links").text.split('<div class="head">')[1].split('<div id="results">')[0]
    assert "Bin 27" in pages.seen(head)
    shown = console.get("/console/links/bin").text
    assert re.findall("<bdi>Title ([0-9]+)", shown) == [str(n) for n in range(26, 1, -1)]
    assert "Select all 27" in shown
    assert "Title 1<" in console.get("/console/links/bin?page=2").text
    assert "2 links deleted forever." in pressed(console, ids[:2], "delete")
    assert "25 links restored." in pressed(console, [], "restore", all="1")
    assert "Select links first." in pressed(console, [], "delete", all="1")
    assert (len(in_bin(bob)), alice.get("/api/urls").get_json()["data"]["result"]) == (1, 25)


def test_a_plan_without_room_says_so_when_a_link_is_restored(
    app: Flask, on_plan: Callable[..., Client], sql: Sql
) -> None:
    carol = on_plan(links=1)
    first = factories.link(sql, carol.id)
    to_bin(carol, first)
    factories.link(sql, carol.id)
    page = pressed(pages.signed_in(app, "carol@example.com"), [first], "restore")
    assert "reached your plan&#39;s limit of 1 links" in page
    assert in_bin(carol) == [first]


@pytest.mark.browser
def test_a_delete_is_undone_in_2_actions(signed_in: Browser, base: str, alice: Client, sql: Sql) -> None:
    link = factories.link(sql, alice.id, title="Summer sale")
    browser = signed_in
    browser.open(f"{base}/console/links/{link}")
    browser.click("Delete")
    browser.click("Delete link")
    browser.wait_for_text("Link deleted.")
    assert in_bin(alice) == [link]
    browser.click("Undo")
    browser.wait_for_text("1 link restored.")
    assert (browser.path, in_bin(alice)) == (f"/console/links/{link}", [])
    browser.click("Delete")
    browser.click("Delete link")
    browser.wait_for_text("Link deleted.")
    browser.open(f"{base}/console/links/bin")
    browser.find("[name=id]").click()
    browser.click("Delete forever")
    browser.wait_for_text("This cannot be undone.")
    browser.find("[name=action][value=delete]").click()
    browser.wait_for_text("The bin is empty.")
    assert in_bin(alice) == []
