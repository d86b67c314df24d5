"""Batches of links that are checked, and the processes that check them."""

import os
import signal
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest
from flask import Flask
from psycopg2.extensions import connection as Connection

from linkmgr.features.health import checks as worker
from linkmgr.features.health import repository as link_checks
from linkmgr.features.health.requests import DEADLINE, LINK_SECONDS
from tests.conftest import Client
from tests.support.checked_sites import HTML, PAGE, health
from tests.support.explain import rows_read
from tests.support.factories import Sql
from tests.support.foreign import answering, server
from tests.support.servers import children
from tests.support.targets import wait_until


def test_picking_the_next_batch_reads_no_other_links(
    app: Flask, alice: Client, raw: Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raw.cursor() as cursor:
        cursor.execute(
            """
        WITH added AS (
            INSERT INTO links (user_id, alias, url)
            SELECT %(id)s, gen_random_uuid(), 'https://example.com/' FROM generate_series(1, 3000) RETURNING id)
        INSERT INTO link_checks (link_id, user_id, due, checked, state)
        SELECT id, %(id)s, now() + interval '1 day', now(), 'ok' FROM added;
        UPDATE service SET checks_until = (SELECT last_value FROM tracked_ids);
        ANALYZE link_checks, links
        """,
            {"id": alice.id},
        )
    for _ in range(3):
        alice.add("/api/url/add", {"url": f"https://example.com/{time.monotonic()}"})
    with app.app_context():
        last = link_checks.last_id()

        def pick() -> None:
            link_checks.begin_turn(last)
            link_checks.add_links(last)
            link_checks.due()

        assert max(rows_read(monkeypatch, dsn, pick)) < 20
        assert len(link_checks.due()) == 3


def test_the_longest_check_of_a_batch_ends_before_its_results_are_stored() -> None:
    """It begins last, with a lookup, and its last request begins when its time is over."""
    longest = worker.BATCH_SECONDS + DEADLINE + LINK_SECONDS + DEADLINE
    assert longest <= worker.MAX_SECONDS
    assert 2 * worker.MAX_SECONDS < link_checks.LEASE_SECONDS  # also with a link that responded


def test_another_process_continues_when_one_is_killed(alice: Client, sql: Sql, serve: Callable[..., str]) -> None:
    """Links are added by the test, because a process waits until their transactions are over."""
    begun, killed = threading.Event(), threading.Event()

    def hang(request: BaseHTTPRequestHandler) -> None:
        begun.set()
        killed.wait(60)
        answering(PAGE, Content_Type=HTML)(request)

    with server(hang) as port:
        link_id = alice.add("/api/url/add", {"url": "https://example.com/"})
        sql("UPDATE links SET url = 'http://127.0.0.1:' || %(port)s || '/' RETURNING 1", port=port)  # no public URL
        sql("INSERT INTO link_checks (link_id, user_id) SELECT id, user_id FROM links RETURNING 1")
        sql("UPDATE service SET checking_until = '-infinity' RETURNING 1")
        before = set(children(os.getpid()))
        serve("--workers", "2", link_check="7")
        [master] = set(children(os.getpid())) - before
        assert begun.wait(60)
        for process in children(master):
            os.kill(process, signal.SIGKILL)
        killed.set()
        assert health(alice, link_id)["checked"] is None
        [lease] = sql("SELECT checking_until > now() + interval '10 seconds' AS holds FROM service")
        assert lease["holds"]
        sql("UPDATE service SET checking_until = now() RETURNING 1")
        wait_until(lambda: health(alice, link_id)["state"] == "ok")
