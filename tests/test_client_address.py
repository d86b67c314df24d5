"""The client IP address, in canonical form."""

import pytest
from flask import Flask

from linkmgr.core.web import request
from tests.support import geoip
from tests.support.factories import Sql
from tests.support.targets import Target

WRITTEN = [
    ("203.0.113.7", "203.0.113.7", "203.0.113.7"),
    ("203.0.113.7:4711", "203.0.113.7", "203.0.113.7"),
    ("[203.0.113.7]:4711", "203.0.113.7", "203.0.113.7"),
    ("::ffff:203.0.113.7", "203.0.113.7", "203.0.113.7"),
    ("[::ffff:203.0.113.7]:4711", "203.0.113.7", "203.0.113.7"),
    ("2001:DB8:0::1", "2001:db8::1", "2001:db8::/64"),
    ("[2001:db8::1]", "2001:db8::1", "2001:db8::/64"),
    ("[2001:db8::1]:443", "2001:db8::1", "2001:db8::/64"),
    ("fe80::1%eth0", "fe80::1", "fe80::/64"),
    ("", "", ""),
    ("unix:", "unix", "unix"),
    ("unknown", "unknown", "unknown"),
    ("a:b", "a:b", "a:b"),
    ("[", "[", "["),
    ("[]:1", "", ""),
    ("2001:db8::1/32", "2001:db8::1/32", "2001:db8::1/32"),
    ("x" * 5000, "x" * 100, "x" * 100),
]


@pytest.mark.parametrize(("written", "address", "network"), WRITTEN)
def test_an_ip_address_is_parsed_in_each_form_that_proxies_send(
    app: Flask, written: str, address: str, network: str
) -> None:
    with app.test_request_context(environ_base={"REMOTE_ADDR": written}):
        assert (request.address(), request.network()) == (address, network)


def test_ipv4_clients_of_an_ipv6_socket_have_separate_counters(app: Flask, sql: Sql) -> None:
    for number in (1, 2):
        app.test_client().post("/login", environ_base={"REMOTE_ADDR": f"::ffff:192.0.2.{number}"})
    found = sql("SELECT bucket FROM rate_windows WHERE bucket LIKE 'login:%%' ORDER BY bucket")
    assert [row["bucket"] for row in found] == ["login:192.0.2.1", "login:192.0.2.2"]


def test_a_visitor_is_counted_once_whatever_port_the_proxy_adds(target: Target) -> None:
    for written in (geoip.PERU, f"{geoip.PERU}:4711", f"{geoip.PERU}:4712", f"::ffff:{geoip.PERU}"):
        target.visit(address=written)
    assert target.statistics()["uniqueClicks"] == 1
    assert target.statistics()["topCountries"] == {"Peru": "4"}
