"""Keys with `domains`."""

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.bodies import LEAST
from tests.support.factories import Sql
from tests.support.keyring import URL, Make, branded, code


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
    assert code(client.post("/api/url/add", {"url": URL, "domain": other})) == (403, "domain_needed")
    assert sql("SELECT FROM links") == []
    link = client.add("/api/url/add", {"url": URL, "domain": domain, "custom": "mine"})
    assert code(client.put(f"/api/url/{link}/update", {"domain": ""})) == (403, "domain_needed")
    assert code(client.put(f"/api/url/{link}/update", {"domain": other})) == (403, "domain_needed")
    assert client.put(f"/api/url/{link}/update", {"metatitle": "New"}).get_json()["details"]["domain"] == domain
    outside = factories.link(sql, alice.id)
    assert code(client.get(f"/api/url/{outside}")) == (404, "missing")
    assert code(client.delete(f"/api/url/{outside}/delete")) == (404, "missing")
    assert [row["id"] for row in client.get("/api/urls").get_json()["data"]["urls"]] == [link]
    assert [row["id"] for row in client.get("/api/urls?q=example").get_json()["data"]["urls"]] == [link]
    alias = sql("SELECT alias FROM links WHERE id = %(id)s", id=outside)[0]["alias"]
    assert client.get(f"/api/urls?short={BASE_URL}/{alias}").get_json()["code"] == "short_url_unknown"


def test_a_key_of_a_domain_has_no_qr_codes(alice: Client, make_restricted: Make, sql: Sql) -> None:
    own, domain = branded(sql, alice)
    client, campaign = make_restricted(alice, domains=[own]), factories.campaign(sql, alice.id)
    assert code(client.post("/api/qr/add", LEAST["qr"])) == (403, "key_confined")
    assert client.get(f"/api/qr/{factories.qr(sql, alice.id)}").status_code == 404
    link = client.add("/api/url/add", {"url": URL, "domain": domain, "campaign": campaign})
    assert client.get(f"/api/url/{link}").get_json()["details"]["campaign"] == campaign


def test_both_limits_apply(alice: Client, make_restricted: Make, sql: Sql) -> None:
    own, domain = branded(sql, alice)
    client = make_restricted(alice, domains=[own], own_only=True)
    theirs = alice.add("/api/url/add", {"url": URL, "domain": domain})
    link = client.add("/api/url/add", {"url": URL, "domain": domain})
    assert [row["id"] for row in client.get("/api/urls").get_json()["data"]["urls"]] == [link]
    assert client.get(f"/api/url/{theirs}").status_code == 404
