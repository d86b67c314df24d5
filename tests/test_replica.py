"""Lists and statistics from a streaming replica, and from the primary when the replica is unusable."""

import signal
from collections.abc import Callable, Iterator

import pytest
from flask import Flask

from linkmgr.core.database import replica, statements
from tests.conftest import Client
from tests.support import machines
from tests.support.clusters import ask
from tests.support.machines import Replica
from tests.support.races import at_once
from tests.support.targets import wait_until

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def standby(app: Flask, dsn: str) -> Iterator[Replica]:
    with machines.replica(dsn) as started:
        yield started


@pytest.fixture
def reading(make_app: Callable[..., Flask], standby: Replica, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flask]:
    """A service that already reads from the replica and checks its state often."""
    monkeypatch.setattr(replica, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(replica, "PAUSE_SECONDS", 0.1)
    made = make_app(replica_url=standby.dsn)
    wait_until(lambda: near(made))
    yield made
    with made.app_context():
        reader(made).close_idle()
        reader(made).primary.close_idle()


def reader(service: Flask) -> replica.Replica:
    found: replica.Replica = service.extensions["linkmgr_database"].reader
    return found


def near(service: Flask) -> bool:
    """Return True if a request would read from the replica."""
    with service.app_context():
        reader(service).read("SELECT 1 AS found", {})
        return reader(service)._is_usable


def links(client: Client) -> int:
    return int(client.get("/api/urls").get_json()["data"]["result"])


def link(client: Client, number: int) -> int:
    return client.add("/api/url/add", {"url": f"https://example.org/{number}"})


def test_lists_and_single_reads_lag_within_the_bound_and_updates_do_not(
    monkeypatch: pytest.MonkeyPatch, reading: Flask, standby: Replica, alice: Client
) -> None:
    monkeypatch.setattr(replica, "MAX_LAG_SECONDS", 3600)
    monkeypatch.setattr(replica, "TIMEOUT_SECONDS", 30)
    client = Client(reading.test_client(), alice.key)
    first = link(client, 1)
    standby.catch_up()
    ask(standby.dsn, "SELECT pg_wal_replay_pause()")
    try:
        second = link(client, 2)
        updated = client.put(f"/api/url/{first}/update", {"url": "https://example.org/new"})
        assert updated.get_json()["details"]["longurl"] == "https://example.org/new"
        assert (links(alice), links(client)) == (2, 1)
        assert [
            each.get(f"/api/url/{first}").get_json()["details"]["longurl"].split("/")[-1] for each in (alice, client)
        ] == ["new", "1"]
        assert client.get(f"/api/url/{second}").status_code == 200
        monkeypatch.setattr(replica, "MAX_LAG_SECONDS", 0.1)
        wait_until(lambda: links(client) == 2)
    finally:
        ask(standby.dsn, "SELECT pg_wal_replay_resume()")
    monkeypatch.setattr(replica, "MAX_LAG_SECONDS", 3600)
    wait_until(lambda: near(reading))


FAULTS: dict[str, Callable[[Replica], object]] = {
    "its connections are ended": lambda standby: ask(
        standby.dsn,
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = 'linkmgr'",
    ),
    "it is killed": lambda standby: machines.signal_all(standby.server, signal.SIGKILL),
    "it freezes": lambda standby: machines.signal_all(standby.server, signal.SIGSTOP),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_loss_of_the_replica_costs_no_request_and_reads_return_to_it_later(
    reading: Flask, standby: Replica, alice: Client, fault: str
) -> None:
    client = Client(reading.test_client(), alice.key)
    link(client, 1)
    standby.catch_up()
    assert links(client) == 1
    FAULTS[fault](standby)
    try:
        wait_until(lambda: links(client) == 1 and not reader(reading)._is_usable)
        assert links(client) == 1
    finally:
        if fault == "it freezes":
            machines.signal_all(standby.server, signal.SIGCONT)
        standby.start()
    wait_until(lambda: near(reading))
    with reading.app_context():
        state = reader(reading).state()
    assert state["replica_in_use"]
    assert 0 <= state["replica_lag_seconds"] < replica.MAX_LAG_SECONDS


def test_a_read_that_the_replica_cancels_is_answered_by_the_primary(
    monkeypatch: pytest.MonkeyPatch, reading: Flask, standby: Replica
) -> None:
    monkeypatch.setattr(replica, "TIMEOUT_SECONDS", 30)
    asked = "SELECT pg_is_in_recovery() AS late, CASE WHEN pg_is_in_recovery() THEN pg_sleep(30)::text END AS slept"
    ending = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"

    def read() -> list[statements.Row]:
        with reading.app_context():
            return reader(reading).read(asked, {})

    def end() -> None:
        wait_until(lambda: ask(standby.dsn, ending) == "1")

    assert at_once(2, lambda number: end() if number else read(), threads=2)[0] == [{"late": False, "slept": None}]


def test_a_server_that_is_not_a_replica_is_not_used(make_app: Callable[..., Flask], dsn: str) -> None:
    assert not near(make_app(replica_url=dsn))
    assert not near(make_app(replica_url="postgresql://postgres@127.0.0.1:1/linkmgr"))
