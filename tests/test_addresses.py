"""Where a visitor may be sent: one writing of each address."""

from collections.abc import Callable

import pytest
from flask import Flask
from marshmallow import ValidationError

from linkmgr.addresses import target
from tests.conftest import Client


@pytest.mark.parametrize(
    "host",
    ["127.1", "2130706433", "0x7f.0.0.1", "0x7f000001", "127.0.0.01", "0177.0.0.1", "x.0x", "example.1", "9.9.9"],
)
def test_another_writing_of_an_address_is_refused(app: Flask, host: str) -> None:
    with app.app_context(), pytest.raises(ValidationError, match="must hold a name, or an address as four numbers"):
        target(f"http://{host}/")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1.", "\uff11\uff12\uff17.0.0.1"])
def test_the_address_of_the_service_is_refused(app: Flask, host: str) -> None:
    with app.app_context(), pytest.raises(ValidationError, match="must not lead back to this service"):
        target(f"http://{host}/")


@pytest.mark.parametrize("host", ["9.9.9.9", "[2606:4700::1111]", "[::ffff:9.9.9.9]", "1.example.com", "0x7f.example"])
def test_names_and_addresses_in_their_usual_writing_are_taken(app: Flask, host: str) -> None:
    with app.app_context():
        assert target(f"http://{host}/").startswith("http://")


def test_an_ipv4_address_in_the_writing_of_ipv6_is_the_same_address(app: Flask) -> None:
    with app.app_context():
        assert target("https://[::ffff:192.0.2.7]/x") == "https://192.0.2.7/x"
        with pytest.raises(ValidationError, match="must not lead back to this service"):
            target("http://[::ffff:127.0.0.1]:5000/")


LOOPBACK = ["localhost", "app.LOCALHOST", "localhost.", "127.0.0.1", "127.0.0.2", "0.0.0.0", "[::1]", "[::]"]  # noqa: S104
LOOPBACK += ["[0:0::1]", "[::ffff:127.0.0.1]", "\uff4cocalhost"]


@pytest.mark.parametrize("host", LOOPBACK)
@pytest.mark.parametrize("base_url", ["http://127.0.0.1:5000", "http://localhost:5000", "http://[::1]:5000"])
def test_while_the_base_url_is_a_loopback_address_all_of_them_are_refused(
    make_app: Callable[..., Flask], register: Callable[..., Client], host: str, base_url: str
) -> None:
    alice = register("alice", via=make_app(base_url=base_url))
    problem = "must not lead back to this service."
    for url in (f"http://{host}/x", f"https://{host}:8443"):
        refused = alice.post("/api/url/add", {"url": url})
        assert (refused.status_code, refused.get_json()["message"]) == (400, f"url {problem}")
        for member in ("redirectroot", "redirect404"):
            refused = alice.post("/api/domain/add", {"domain": "https://links.example.net", member: url})
            assert (refused.status_code, refused.get_json()["message"]) == (400, f"{member} {problem}")
    made = alice.post(
        "/api/url/add", {"url": "https://example.com/", "domain": f"http://{host}:5000", "custom": "own1"}
    )
    assert made.get_json()["shorturl"] == f"{base_url}/own1"


@pytest.mark.parametrize("host", LOOPBACK)
def test_under_a_public_base_url_loopback_addresses_are_taken(make_app: Callable[..., Flask], host: str) -> None:
    with make_app(base_url="https://go.example.org").app_context():
        assert target(f"http://{host}:3000/").endswith(":3000/")
    with (
        make_app(base_url="https://go.example.org", serve_loopback="1").app_context(),
        pytest.raises(ValidationError, match="must not lead back to this service"),
    ):
        target(f"http://{host}:3000/")
