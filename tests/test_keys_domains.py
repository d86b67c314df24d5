"""Keys with `domains`."""

from flask import Flask

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.bodies import LEAST
from tests.support.factories import Sql
from tests.support.keyring import OWNED, URL, Make, branded, code
from tests.support.operations import KEYED


def test_a_key_of_a_domain_makes_links_there_only(alice: Client, make_restricted: Make, sql: Sql) -> None:
    (own, domain), (_, other) = branded(sql, alice), branded(sql, alice)
    client = make_restricted(alice, domains=[own])
    for body in (
        {"url": URL},
        {"url": URL, "custom": "mine"},
        {"url": URL, "domain": ""},
        {"url": URL, "domain": BASE_URL},
    ):
        assert client.post("/api/url/add", body).status_code in (400, 403)
    assert code(client.post("/api/url/add", {"url": URL})) == (403, "domain_needed")
    assert code(client.post("/api/url/add", {"url": URL, "domain": other})) == (400, "domain_unknown")
    assert sql("SELECT FROM links") == []
    link = client.add("/api/url/add", {"url": URL, "domain": domain, "custom": "mine"})
    assert code(client.put(f"/api/url/{link}/update", {"domain": ""})) == (403, "domain_needed")
    assert code(client.put(f"/api/url/{link}/update", {"domain": other})) == (400, "domain_unknown")
    assert client.put(f"/api/url/{link}/update", {"metatitle": "New"}).get_json()["details"]["domain"] == domain
    outside = factories.link(sql, alice.id)
    assert code(client.get(f"/api/url/{outside}")) == (404, "missing")
    assert code(client.delete(f"/api/url/{outside}/delete")) == (404, "missing")
    assert [row["id"] for row in client.get("/api/urls").get_json()["data"]["urls"]] == [link]
    assert [row["id"] for row in client.get("/api/urls?q=example").get_json()["data"]["urls"]] == [link]
    assert [row["id"] for row in client.get("/api/domains").get_json()["data"]["domains"]] == [own]
    alias = sql("SELECT alias FROM links WHERE id = %(id)s", id=outside)[0]["alias"]
    assert client.get(f"/api/urls?short={BASE_URL}/{alias}").get_json()["code"] == "short_url_unknown"


def test_a_key_of_a_domain_changes_nothing_but_links(alice: Client, make_restricted: Make, sql: Sql) -> None:
    own, domain = branded(sql, alice)
    client, campaign = make_restricted(alice, domains=[own]), factories.campaign(sql, alice.id)
    for word in OWNED:
        body = LEAST[word]
        if word != "url":
            assert code(client.post(f"/api/{word}/add", body)) == (403, "key_confined")
    assert code(client.put(f"/api/domain/{own}/update", {"redirect404": URL})) == (403, "key_confined")
    link = client.add("/api/url/add", {"url": URL, "domain": domain, "campaign": campaign})
    assert client.get(f"/api/url/{link}").get_json()["details"]["campaign"] == campaign
    for make in (factories.qr, factories.bio):
        assert client.get(f"/api/{make.__name__}/{make(sql, alice.id)}").status_code == 404


def test_both_limits_apply(alice: Client, make_restricted: Make, sql: Sql) -> None:
    own, domain = branded(sql, alice)
    client = make_restricted(alice, domains=[own], own_only=True)
    theirs = alice.add("/api/url/add", {"url": URL, "domain": domain})
    link = client.add("/api/url/add", {"url": URL, "domain": domain})
    assert [row["id"] for row in client.get("/api/urls").get_json()["data"]["urls"]] == [link]
    assert client.get(f"/api/url/{theirs}").status_code == 404


def test_views_that_do_not_know_the_limits_are_refused(app: Flask, alice: Client, make_restricted: Make) -> None:
    client = make_restricted(alice, own_only=True)
    assert code(client.get("/api/account")) == (403, "key_confined")
    assert code(client.put("/api/account/update", {"password": "something else"})) == (403, "key_confined")
    allowed = {call.operation.id.partition(".")[2] for call in KEYED if call.operation.restricted}
    checked = {
        "list", "get", "create", "update", "delete", "assign", "unassign", "listVisits", "listAnswers", "rotate",
        "query",
    }  # fmt: skip
    assert checked == allowed, "check the statements of a new operation, and test it here"
