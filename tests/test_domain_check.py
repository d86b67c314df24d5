import hashlib
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from unittest.mock import ANY
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pycurl
import pytest
from flask import Flask

from linkmgr.core.outbound import fetch
from tests.conftest import Client
from tests.support.factories import PLAIN
from tests.support.foreign import Publish, answering, publish, resolve
from tests.support.servers import free_port
from tests.support.slots import full

DOMAIN = {"domain": "https://go.example.com"}


@pytest.fixture
def checked(app_with: Callable[..., Flask], register: Callable[..., Client], app: Flask) -> Client:
    """A user of a service that checks domains."""
    service = app_with(domain_check="http", base_url="https://go.example.org", serve_loopback="1")
    return register("carol", via=service)


def listed(client: Client) -> list[dict[str, Any]]:
    domains: list[dict[str, Any]] = client.get("/api/domains").get_json()["data"]["domains"]
    return domains


def refusal(client: Client, **more: Any) -> str:
    answer = client.post("/api/domain/add", DOMAIN | more)
    assert (answer.status_code, listed(client)) == (400, [])
    return str(answer.get_json()["message"])


def unproven(found: str) -> str:
    return f"go.example.com {found}. Point it to the server of https://go.example.org, then try again."


def test_a_domain_that_points_to_the_service_passes(
    checked: Client, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(monkeypatch, {"go.example.com:80": urlsplit(base).port or 0})
    domain_id = checked.add("/api/domain/add", DOMAIN)
    assert listed(checked) == [
        {
            "id": domain_id,
            **DOMAIN,
            "redirectroot": "",
            "redirect404": "",
            "updated": ANY,
            **dict.fromkeys(("forwardquery", "clickid", "ignorecase", "widealiases"), False),
        }
        | PLAIN
    ]


def test_another_installation_does_not_pass(
    checked: Client, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = serve("--workers", "1", secret_key="that of another installation than ours")
    publish(monkeypatch, {"go.example.com:80": urlsplit(other).port or 0})
    assert refusal(checked) == unproven("resolves to 127.0.0.1, where another server responded")


@pytest.mark.parametrize("status", [200, 404, 500])
def test_a_foreign_server_does_not_pass(checked: Client, web: Publish, status: int) -> None:
    web(answering(b"Buy this domain!", status))
    assert refusal(checked) == unproven("resolves to 127.0.0.1, where another server responded")


def test_a_foreign_server_that_echoes_the_request_does_not_pass(checked: Client, web: Publish) -> None:
    def repeat(request: BaseHTTPRequestHandler) -> None:
        token = request.path.rsplit("/", 1)[1]
        answering(hashlib.sha256(f"domain challenge go.example.com {token}".encode()).hexdigest().encode())(request)

    web(repeat)
    assert refusal(checked) == unproven("resolves to 127.0.0.1, where another server responded")


@pytest.mark.parametrize("towards", ["go.example.org", "relay.example.com"])
def test_a_foreign_server_that_redirects_to_the_service_does_not_pass(
    checked: Client, web: Publish, base: str, monkeypatch: pytest.MonkeyPatch, towards: str
) -> None:
    """Redirect to the service's own name, and proxy the request under the name of the domain."""

    def send_on(request: BaseHTTPRequestHandler) -> None:
        if request.headers["Host"] == "go.example.com":
            answering(b"", 302, Location=f"http://{towards}{request.path}")(request)
        else:
            with urlopen(Request(base + request.path, headers={"Host": "go.example.com"})) as answer:
                answering(answer.read())(request)

    port = web(send_on)
    ports = {"go.example.com:80": port, "relay.example.com:80": port, "go.example.org:80": urlsplit(base).port or 0}
    publish(monkeypatch, ports)
    assert refusal(checked) == unproven("resolves to 127.0.0.1, where another server responded")


def test_a_name_that_resolves_to_a_private_address_does_not_pass(
    checked: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(monkeypatch, go_example_com="10.0.0.1")
    assert refusal(checked) == unproven("resolves to 10.0.0.1, which is not public")


def test_a_name_whose_server_is_down_does_not_pass(checked: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch, {"go.example.com:80": free_port()})
    assert refusal(checked) == unproven("resolves to 127.0.0.1, where no web server could be reached")


def test_a_name_whose_server_is_slow_does_not_pass(
    checked: Client, web: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    web(lambda _: time.sleep(0.4))
    monkeypatch.setattr(fetch, "DEADLINE", 0.2)
    assert refusal(checked) == unproven("resolves to 127.0.0.1, where no web server responded in time")


def test_a_name_that_does_not_resolve_does_not_pass(checked: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    # libcurl never queries DNS for a name below .onion, which replaces the domain here.
    monkeypatch.setitem(fetch.OPTIONS, pycurl.CONNECT_TO, ["go.example.com:80:nowhere.onion:80"])
    assert refusal(checked) == unproven("does not resolve to an IP address")


def test_an_invalid_name_is_rejected_before_anything_is_fetched(checked: Client, web: Publish) -> None:
    asked = []
    web(lambda request: asked.append(request.path))
    assert refusal(checked, redirectroot="x").startswith("redirectroot must")
    assert refusal(checked, domain="https://go.example.com:80") == "domain must not contain a port."
    assert asked == []


def test_every_challenge_has_a_different_response_under_every_name(app: Flask) -> None:
    answers = set()
    for host in ("go.example.com", "www.example.com"):
        for token in ("a", "b"):
            answer = app.test_client().get(f"/.well-known/linkmgr/{token}", headers={"Host": host})
            assert (answer.status_code, answer.mimetype) == (200, "text/plain")
            answers.add(answer.text)
    assert len(answers) == 4
    again = app.test_client().get("/.well-known/linkmgr/a", headers={"Host": "GO.example.com:8080"})
    assert again.text in answers


def test_a_check_beyond_the_limit_of_fetches_is_to_be_retried(app: Flask, checked: Client, web: Publish) -> None:
    web(answering(b"never asked"))
    with full(app):
        answer = checked.post("/api/domain/add", DOMAIN)
    assert (answer.status_code, listed(checked)) == (503, [])
    assert answer.get_json()["message"] == "Too many requests that take long are in progress. Try again in 2 seconds."
