"""The service while its database accepts connections but does not respond, and while its commits wait."""

import http.client
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from linkmgr.core.database.embedded import Server
from tests.faults.deployment import TARGET, Database, Deployment, answer, call, folder, postgres, service
from tests.support import machines
from tests.support.targets import FIREFOX, wait_until

pytestmark = pytest.mark.services

BOUND = 6  # seconds, of redirects and of /healthz: 2 on a machine that does little else
WRITES = 12  # more than the threads of all workers


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with folder() as where, postgres(where) as started:
        yield started


@pytest.fixture(scope="module")
def standby(database: Database) -> Iterator[machines.Replica]:
    with machines.replica(database.dsn) as started:
        yield started


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    machines.signal_all(server, signal.SIGSTOP)
    try:
        yield
    finally:
        machines.signal_all(server, signal.SIGCONT)


def timed(deployment: Deployment, path: str) -> int:
    """Return the status of a response that arrives in time, of a new connection."""
    connection = http.client.HTTPConnection(urlsplit(deployment.base).netloc, timeout=2 * BOUND)
    started = time.monotonic()
    connection.request("GET", path, headers={"User-Agent": FIREFOX})
    response = connection.getresponse()
    connection.close()
    assert time.monotonic() - started < BOUND, path
    if response.status == 302:
        assert response.getheader("Location") == TARGET
    return response.status


def repeat(deployment: Deployment, path: str, times: int = 8) -> set[int]:
    return {timed(deployment, path) for _ in range(times)}


@contextmanager
def writing(deployment: Deployment) -> Iterator[list[Future[tuple[int, bytes]]]]:
    """Send writes until all threads for them wait."""
    with ThreadPoolExecutor(WRITES) as pool:
        body = {"url": "https://example.org/new"}
        yield [pool.submit(call, deployment, "POST", "/api/url/add", body | {"custom": f"n{n}"}) for n in range(WRITES)]


def clicks(deployment: Deployment, link: int) -> int:
    [(number,)] = deployment.database.query("SELECT clicks FROM totals WHERE tracked_id = %(link)s", link=link) or [
        (0,)
    ]
    return int(number)


def test_no_thread_waits_for_a_frozen_database_and_recent_links_redirect(database: Database) -> None:
    with service(database, workers="1") as deployment:  # each knows the links that it has redirected to
        link = deployment.link("recent")
        deployment.link("disabled")
        deployment.link("rare")
        assert repeat(deployment, "/recent") | repeat(deployment, "/disabled") == {302}
        database.query("UPDATE links SET expiry = now() WHERE alias = 'disabled'")
        wait_until(lambda: repeat(deployment, "/disabled") == {410})  # a slow database is taken for one that is frozen
        redirects = 8
        with frozen(database.server), writing(deployment) as writes:
            started = time.monotonic()
            while time.monotonic() - started < 8:
                assert timed(deployment, "/healthz") == 503
                assert (timed(deployment, "/recent"), timed(deployment, "/rare")) == (302, 503)
                redirects += 1
                time.sleep(0.05)  # other tests need the processor
            assert timed(deployment, "/disabled") == 503
            assert {write.result()[0] for write in writes} == {503}
        wait_until(lambda: timed(deployment, "/healthz") == 200)
        answer(deployment, "POST", "/api/url/add", {"url": "https://example.org/after"})
        assert timed(deployment, "/rare") == 302
        wait_until(lambda: clicks(deployment, link) >= redirects)
        assert clicks(deployment, link) == redirects


def test_a_replica_redirects_without_its_primary(database: Database, standby: machines.Replica) -> None:
    with service(database, replica_url=standby.dsn) as deployment:
        deployment.link("on-replica")
        standby.catch_up()
        with frozen(database.server):
            assert repeat(deployment, "/on-replica") == {302}
            assert timed(deployment, "/healthz") == 503
        wait_until(lambda: timed(deployment, "/healthz") == 200)


def test_redirects_and_health_checks_do_not_wait_for_commits(database: Database, standby: machines.Replica) -> None:
    database.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
    database.query("SELECT pg_reload_conf()")
    try:
        with service(database) as deployment:
            deployment.link("during")
            with frozen(standby.server), writing(deployment) as writes:
                time.sleep(0.5)
                assert repeat(deployment, "/during") == {302}
                assert repeat(deployment, "/healthz") == {200}
                assert {write.result()[0] for write in writes} == {503}
            wait_until(lambda: call(deployment, "POST", "/api/url/add", {"url": "https://example.org/again"})[0] == 200)
    finally:
        database.query("ALTER SYSTEM RESET synchronous_standby_names")
        database.query("SELECT pg_reload_conf()")
