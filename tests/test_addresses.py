"""Where a visitor may be sent: one writing of each address."""

import pytest
from flask import Flask
from marshmallow import ValidationError

from linkmgr.addresses import target


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
