"""Checks of the targets of links are bounded by the IP address that a name has, and shared by users."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from itertools import pairwise

import pytest

from linkmgr.features.health import checks as worker
from linkmgr.features.health.addresses import locate
from tests.conftest import Client
from tests.support.checked_sites import Check, Site, health
from tests.support.factories import Sql
from tests.support.foreign import answering, publish, publish_at, resolve, server

WILDCARD = [f"shop{number}.wild.example.com" for number in range(20)]


@pytest.fixture
def wild(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server under many names."""
    made = Site()
    with server(made) as port:
        publish(monkeypatch, {f"{host}:80": port for host in WILDCARD})
        yield made


def test_a_server_with_many_names_gets_one_request_at_a_time(
    *, alice: Client, bob: Client, wild: Site, check: Check, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linkmgr.features.health.requests.SPACING", 0.1)
    monkeypatch.setattr(worker, "PER_ADDRESS", 6)
    wild.answers["/elsewhere"] = answering(b"", 302, Location=f"http://{WILDCARD[-1]}/page")
    for number, host in enumerate(WILDCARD[:-1]):
        client, path = ((alice, "page"), (bob, "elsewhere"))[number % 2]
        client.add("/api/url/add", {"url": f"http://{host}/{path}"})
    check()
    assert sql("SELECT count(*) AS number FROM link_checks WHERE checked > '-infinity'") == [{"number": 6}]
    assert all(later.began - earlier.ended > 0.08 for earlier, later in pairwise(wild.requests))
    waiting = sql("SELECT extract(epoch FROM due - now())::float AS seconds FROM link_checks WHERE checked IS NULL")
    times = sorted(row["seconds"] for row in waiting)
    assert (len(times), times[0] > 0) == (13, True)
    assert all(later - earlier > 1 for earlier, later in pairwise(times))


def test_names_in_the_same_64_of_ipv6_are_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", "2001:db8:0:2::1", "::ffff:192.0.2.7", "192.0.2.7")
    names = {f"n{number}_example_com": address for number, address in enumerate(addresses)}
    resolve(monkeypatch, **names)
    found = [locate(f"http://{name.replace('_', '.')}/", 5) for name in names]
    assert found == ["2001:db8:0:1::/64"] * 2 + ["2001:db8:0:2::/64"] + ["192.0.2.7"] * 2


def test_slow_targets_of_a_user_leave_threads_to_others(
    alice: Client, bob: Client, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "THREADS", 2)
    is_checked, names = threading.Event(), [f"slow{number}.example.com" for number in range(5)]

    def slow(_: BaseHTTPRequestHandler) -> None:
        assert is_checked.wait(30)

    def fast(request: BaseHTTPRequestHandler) -> None:
        is_checked.set()
        answering(b"")(request)

    with ExitStack() as servers:
        places = {}
        for number, name in enumerate(names):
            address = f"127.0.0.{2 + number}"
            port = servers.enter_context(server(fast if number == 2 else slow, address=address))
            places[f"{name}:80"] = (address, port)
        publish_at(monkeypatch, places)
        ids = [
            (bob if number == 2 else alice).add("/api/url/add", {"url": f"http://{name}/"})
            for number, name in enumerate(names)
        ]
        check()
        assert health(bob, ids[2])["state"] == "ok"
