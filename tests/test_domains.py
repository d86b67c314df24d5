from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
from flask import Flask

from tests.conftest import Client
from tests.support.races import during
from tests.support.refusals import Refusal, schemas

DOMAIN = {"domain": "https://go.example.com"}
ABOUT, LOST = "https://www.example.com/about", "https://www.example.com/lost"
CIRCLE = "redirectroot and redirect404 cannot be on a branded domain, because this can cause a redirect loop."


def listed(client: Client) -> list[dict[str, Any]]:
    domains: list[dict[str, Any]] = client.get("/api/domains").get_json()["data"]["domains"]
    return domains


def refused(client: Client, **sent: Any) -> str:
    answer = client.post("/api/domain/add", sent)
    assert answer.status_code == 400
    return str(answer.get_json()["message"])


def test_a_deleted_domain_is_free_for_other_users(alice: Client, bob: Client) -> None:
    domain_id = alice.add("/api/domain/add", DOMAIN)
    assert alice.delete(f"/api/domain/{domain_id}/delete").status_code == 200
    assert bob.add("/api/domain/add", DOMAIN) == domain_id + 1  # one id of the sequence for each


def test_a_name_belongs_to_one_user_in_any_spelling(alice: Client, bob: Client) -> None:
    alice.add("/api/domain/add", DOMAIN)
    for client in (alice, bob):
        for domain in ("https://go.example.com", "http://GO.example.com", "https://go.example.com./"):
            assert refused(client, domain=domain) == "This domain is already in use."


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("http://go.example.com", "http://go.example.com"),
        ("https://go.example.com\u3002", "https://go.example.com"),
        ("HTTPS://Go.Example.COM/", "https://go.example.com"),
        ("https://go.example.com.", "https://go.example.com"),
        ("https://b\u00fccher.example.com", "https://xn--bcher-kva.example.com"),
        ("https://xn--bcher-kva.example.com", "https://xn--bcher-kva.example.com"),
        ("https://go\u3002example\uff0ecom", "https://go.example.com"),
        ("https://\u0627\u0644\u0639\u0631\u0628\u064a\u0629.example.com", "https://xn--mgbcd4a2b0d2b.example.com"),
        ("https://1.2.3.example.com", "https://1.2.3.example.com"),
    ],
)
def test_a_name_is_stored_in_its_dns_form(alice: Client, sent: str, kept: str) -> None:
    alice.add("/api/domain/add", {"domain": sent})
    assert listed(alice)[0]["domain"] == kept


CHARACTERS = "domain must not contain spaces, control characters or backslashes."
SCHEME = "domain must be a URL that begins with http:// or https://."
ADDRESS = "domain must contain a host name, not an IP address."
EXTRA = "domain must not contain a path, query or fragment."
UNKNOWN = "domain must contain a public host name such as go.example.com."
INVALID = "domain must contain a valid host name."


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        *((f"https://go.exa{character}mple.com", CHARACTERS) for character in "\t\n\r\v \x7f\\\u00a0\u2028"),
        ("go.example.com", SCHEME),
        ("//go.example.com", SCHEME),
        ("ftp://go.example.com", SCHEME),
        ("javascript://go.example.com", SCHEME),
        ("https://", SCHEME),
        ("https:///go.example.com", SCHEME),
        ("https://me@go.example.com", "domain must not contain a user name or password."),
        ("https://me:pw@go.example.com", "domain must not contain a user name or password."),
        ("https://go.example.com:8080", "domain must not contain a port."),
        ("https://go.example.com:443", "domain must not contain a port."),
        ("https://go.example.com:", "domain must not contain a port."),
        ("https://go.example.com:x", "domain must be a valid URL."),
        ("https://go.example.com/a", EXTRA),
        ("https://go.example.com?", EXTRA),
        ("https://go.example.com/?a=1", EXTRA),
        ("https://go.example.com#a", EXTRA),
        *((f"https://{host}", ADDRESS) for host in ("127.0.0.1", "127.1", "0x7f.0x1", "a.0x", "2130706433")),
        *((f"https://{host}", ADDRESS) for host in ("[::1]", "[2606:4700::1111]", "\uff11.\uff12.\uff13.\uff14")),
        *((f"https://{host}", UNKNOWN) for host in ("localhost", "example", "go.local", "go.internal", "go.invalid")),
        *((f"https://{host}", UNKNOWN) for host in ("go.onion", "1.in-addr.arpa", "go.home", "go.lan", "go.LOCALHOST")),
        *((f"https://{host}", INVALID) for host in ("a..com", "-a.com", "a-.com", "a_b.com", "a%2eb.com", "xn--a.com")),
        *((f"https://{host}", INVALID) for host in (".", "go.example.com..", "\u200d.com", "a\u2488com", "\u265a.com")),
        (f"https://{'a' * 64}.com", INVALID),
        (f"https://{'a.' * 126}com", INVALID),
        (f"https://{'a' * 3000}.com", "domain must be at most 2048 characters."),
    ],
)
def test_a_name_that_cannot_be_a_branded_domain_is_rejected(refusal: Refusal, domain: str, message: str) -> None:
    assert refusal(schemas("domain")[0], {"domain": domain}) == message


@pytest.mark.parametrize("host", ["go.example.org", "GO.example.org.", "my.go.example.org"])
def test_the_names_of_the_service_itself_are_rejected(
    app_with: Callable[..., Flask], register: Callable[..., Client], app: Flask, host: str
) -> None:
    alice = register("alice", via=app_with(base_url="https://go.example.org", serve_loopback="1"))
    assert (
        refused(alice, domain=f"https://{host}") == "domain must not be the host of this service or a subdomain of it."
    )
    alice.add("/api/domain/add", {"domain": "https://notgo.example.org"})


# --- redirects


@pytest.mark.parametrize("member", ["redirectroot", "redirect404"])
@pytest.mark.parametrize("form", ["https://{}", "http://{}/x", "https://{}:8443/", "https://{}?a", "https://{}#a"])
def test_a_redirect_to_a_branded_domain_is_rejected(alice: Client, bob: Client, member: str, form: str) -> None:
    bob.add("/api/domain/add", {"domain": "https://bob.example.com"})
    own, bobs = ({member: form.format(host)} for host in ("GO.example.com", "bob.example.com"))
    assert refused(alice, **DOMAIN, **own) == CIRCLE
    assert refused(alice, **DOMAIN, **bobs) == CIRCLE
    assert listed(alice) == []
    domain_id = alice.add("/api/domain/add", DOMAIN | {member: ABOUT})
    for sent in (own, bobs):
        answer = alice.put(f"/api/domain/{domain_id}/update", sent)
        assert (answer.status_code, answer.get_json()["message"]) == (400, CIRCLE)
    assert listed(alice)[0][member] == ABOUT


@pytest.mark.parametrize(("member", "other"), [("redirectroot", "redirect404"), ("redirect404", "redirectroot")])
def test_a_redirect_to_a_later_branded_domain_does_not_block_other_changes(
    alice: Client, member: str, other: str
) -> None:
    domain_id = alice.add("/api/domain/add", DOMAIN | {member: "https://shop.example.com/"})
    assert refused(alice, domain="https://shop.example.com", **{member: "https://go.example.com/"}) == CIRCLE
    alice.add("/api/domain/add", {"domain": "https://shop.example.com"})
    assert alice.put(f"/api/domain/{domain_id}/update", {other: LOST}).status_code == 200
    assert listed(alice)[1][other] == LOST


def test_of_two_domains_that_redirect_to_each_other_only_one_is_added(
    alice: Client, bob: Client, raw: psycopg2.extensions.connection
) -> None:
    first = f"""
        WITH added AS (
            INSERT INTO domains (user_id, scheme, host, redirectroot)
            VALUES ({alice.id}, 'https', 'one.example.net', 'https://two.example.net/') RETURNING redirectroot)
        SELECT FROM added WHERE require_unbranded(ARRAY[redirectroot])
    """
    second = {"domain": "https://two.example.net", "redirectroot": "https://one.example.net/"}
    answer = during(raw, first, lambda: bob.post("/api/domain/add", second))
    assert answer.status_code == 400
    assert "branded domain" in answer.get_json()["message"]
