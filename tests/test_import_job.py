"""The job of an import: batches, cancellation, processes that are killed, and visits."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from linkmgr.core.database import session
from linkmgr.core.web import passwords
from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.features.imports import job, links
from linkmgr.features.imports import repository as imports
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.imported import AGENT, DUMP, Import, aliases, counts, details, import_of, sale, send, shlink, yourls
from tests.support.races import at_once
from tests.support.servers import children


@pytest.mark.usefixtures("small_batches")
def test_a_process_that_is_killed_between_batches_loses_and_repeats_no_row(
    alice: Client,
    one_batch: Callable[[], bool],
    run_jobs: Callable[[], None],
    sql: Sql,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job, "MAX_READ", 50)
    import_id = send(alice, shlink(*(sale(f"row-{n}", clicks=n) for n in range(110)))).get_json()["id"]
    for _ in range(6):  # of which the first three read the file
        assert one_batch()
        job._local.readings.clear()
    found = import_of(alice, import_id)
    assert counts(found) == ("running", 60, 60, 0, 0, 0)
    assert found["seconds_left"] is not None
    run_jobs()
    assert counts(import_of(alice, import_id)) == ("done", 110, 110, 0, 0, 0)
    assert len(aliases(sql, alice)) == 110
    assert sql("SELECT FROM import_rows WHERE place < 0") == []


@pytest.mark.usefixtures("small_batches")
def test_rows_of_the_same_new_url_make_one_link(alice: Client, run_import: Import) -> None:
    found = run_import(alice, b"url\n" + b"https://example.com/same\n" * 50)
    assert (found["made"], found["skipped"]) == (1, 49)
    assert alice.get("/api/urls").get_json()["data"]["result"] == 1


@pytest.mark.usefixtures("small_batches")
def test_two_processes_that_run_the_same_job_store_each_row_once(app: Flask, alice: Client, sql: Sql) -> None:
    """One of them was suspended past its lease."""
    import_id = send(alice, shlink(*(sale(f"row-{n}") for n in range(200)))).get_json()["id"]

    def run(_: int) -> None:
        with app.app_context():
            while not job.run_batch(alice.id, import_id):
                pass

    at_once(4, run)
    found = import_of(alice, import_id)
    assert counts(found) == ("done", 200, 200, 0, 0, 0)
    assert len(aliases(sql, alice)) == 200


@pytest.mark.usefixtures("small_batches")
def test_a_cancelled_import_keeps_the_links_that_it_made(
    alice: Client, one_batch: Callable[[], bool], run_jobs: Callable[[], None], sql: Sql
) -> None:
    import_id = send(alice, shlink(*(sale(f"row-{n}") for n in range(100)))).get_json()["id"]
    assert one_batch()
    assert one_batch()
    answer = alice.delete(f"/api/imports/{import_id}")
    assert answer.get_json()["message"] == "Import has been cancelled."
    run_jobs()
    found = import_of(alice, import_id)
    assert counts(found) == ("cancelled", 20, 20, 0, 0, 0)
    assert found["finished"]
    assert len(aliases(sql, alice)) == 20
    assert sql("SELECT FROM import_rows WHERE place < 0") == sql("SELECT FROM jobs") == []
    assert alice.delete(f"/api/imports/{import_id}").get_json()["message"] == "Import has been deleted successfully."
    assert alice.get(f"/api/imports/{import_id}").status_code == 404
    assert len(aliases(sql, alice)) == 20


def test_a_bug_ends_the_import_with_a_message(
    alice: Client, run_import: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(links, "store", fail)
    found = run_import(alice, shlink(sale("summer")))
    assert counts(found) == ("failed", 0, 0, 0, 0, 0)
    assert found["message"] == "The import stopped after row 0 because of an error on our side."


def test_a_user_has_a_limited_number_of_unfinished_imports(alice: Client, bob: Client) -> None:
    file = shlink(sale("summer"))
    answers = at_once(5, lambda _: send(alice, file).status_code)
    assert sorted(answers) == [200, 200, 200, 409, 409]
    assert send(bob, file).status_code == 200


def test_a_user_keeps_a_limited_number_of_imports_that_have_ended(
    alice: Client, run_import: Import, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MAX_KEPT", 2)
    ids = [run_import(alice, shlink(sale("no alias")))["id"] for _ in range(4)]
    assert [row["id"] for row in sql("SELECT id FROM imports ORDER BY id")] == ids[1:]
    assert sql("SELECT DISTINCT import_id AS id FROM import_rows ORDER BY 1") == [{"id": n} for n in ids[1:]]


def test_the_failed_rows_of_the_oldest_imports_are_deleted_first(
    alice: Client, run_import: Import, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_rows, "MAX_ERROR_BYTES", 400)
    ids = [run_import(alice, shlink(sale("no alias")))["id"] for _ in range(3)]
    assert sql("SELECT DISTINCT import_id AS id FROM import_rows") == [{"id": ids[-1]}]
    last = run_import(alice, shlink(*[sale("no alias")] * 30))
    assert last["failed"] == 30
    [kept] = sql(
        """
        SELECT count(*) AS rows, sum(octet_length(raw::text) + octet_length(message)) AS bytes, min(import_id) AS id
          FROM import_rows
        """
    )
    assert (kept["rows"] >= 1, kept["bytes"] <= 400, kept["id"]) == (True, True, last["id"])


def test_the_token_of_a_service_is_encrypted_and_deleted_at_the_end(
    alice: Client, run_jobs: Callable[[], None], sql: Sql
) -> None:
    service = {"source": "shlink", "address": "https://s.invalid", "token": "a-secret"}
    import_id = alice.post("/api/imports/service", service).get_json()["id"]
    [stored] = sql("SELECT token FROM imports")
    assert stored["token"]
    assert "a-secret" not in stored["token"]
    run_jobs()
    assert sql("SELECT token FROM imports") == [{"token": None}]
    found = import_of(alice, import_id)
    assert found["state"] == "failed"
    assert found["message"].endswith(".")


def test_the_hashes_of_many_passwords_do_not_exceed_the_timeout_of_a_transaction(
    make_app: Callable[..., Flask], alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap = passwords.hasher

    class Slow:
        def hash(self, password: str) -> str:
            time.sleep(0.015)
            return cheap.hash(password)

    rows = "\n".join(f"https://example.com,row-{n},secret {n}" for n in range(100))
    import_id = send(alice, f"url,custom,password\n{rows}\n".encode()).get_json()["id"]
    monkeypatch.setattr(passwords, "hasher", Slow())
    options = f"{session.STARTUP_OPTIONS} -c idle_in_transaction_session_timeout=1000"
    monkeypatch.setattr(session, "STARTUP_OPTIONS", options)
    with make_app().app_context():
        while not job.run_batch(alice.id, import_id):
            pass
    found = import_of(alice, import_id)
    assert counts(found) == ("done", 100, 100, 0, 0, 0)
    assert sql("SELECT count(password_hash) AS number FROM links") == [{"number": 100}]


# --- visits


def test_visits_of_the_source_are_stored_once_with_exact_totals(
    alice: Client, one_batch: Callable[[], bool], run_jobs: Callable[[], None], monkeypatch: Any, sql: Sql
) -> None:
    monkeypatch.setattr(job, "MAX_ROWS", 50)
    import_id = send(alice, yourls("summer", 120, 200)).get_json()["id"]
    for _ in range(4):
        assert one_batch()
        job._local.readings.clear()
    run_jobs()
    found = import_of(alice, import_id)
    assert (found["state"], found["made"], found["visits"]) == ("done", 1, 120)
    link = details(alice, "summer")
    statistics = alice.get(f"/api/url/{link['id']}").get_json()["data"]
    assert (statistics["clicks"], link["imported_clicks"]) == (120, 80)
    assert statistics["topCountries"] == {"Germany": "120"}
    assert statistics["topReferrers"] == {"t.co": "120"}
    assert statistics["topBrowsers"] == {"Firefox": "120"}
    assert sql("SELECT visits::int FROM tracked_rollups WHERE unit = 'all'") == [{"visits": 120}]
    assert sql("SELECT FROM import_rows") == []
    assert sql("SELECT FROM visit_spools WHERE name LIKE 'import%%'") == []


def test_visits_of_yourls_have_visitors_by_their_ip_addresses(
    alice: Client, run_import: Import, dump: Callable[[], Any]
) -> None:
    """An unknown address, or the one of a proxy on the same machine, stands for no visitor."""
    addresses = (
        "203.0.113.7",
        "203.0.113.7",
        "2001:db8::7",
        "2001:0DB8:0::7",
        "203.0.113.8",
        "",
        "127.0.0.1",
        "x",
        "x",
    )
    visits = (
        f"({n},'2024-02-01 12:00:{n:02}','summer','direct','{AGENT}','{address}','')"
        for n, address in enumerate(addresses)
    )
    found = run_import(alice, DUMP.format(alias="summer", clicks=9, visits=",".join(visits)).encode())
    assert (found["state"], found["visits"]) == ("done", 9)
    statistics = alice.get(f"/api/url/{details(alice, 'summer')['id']}").get_json()["data"]
    assert (statistics["clicks"], statistics["uniqueClicks"]) == (9, 3)
    assert "203.0.113" not in str(dump())


@pytest.mark.slow
def test_an_import_continues_after_its_worker_was_killed(alice: Client, serve: Callable[..., str], sql: Sql) -> None:
    number = 1_000
    before = set(children(os.getpid()))
    serve("--workers=1")
    [master] = set(children(os.getpid())) - before
    import_id = send(alice, shlink(*(sale(f"row-{n}") for n in range(number)))).get_json()["id"]

    def made() -> int:
        return int(sql("SELECT made FROM imports WHERE id = %(id)s", id=import_id)[0]["made"])

    for part in (300, 600):
        while made() < part:
            time.sleep(0.05)
        for worker in children(master):
            os.kill(worker, signal.SIGKILL)
        sql("UPDATE jobs SET due = now() RETURNING 1")  # expire the lease
    while not sql("SELECT FROM imports WHERE state = 'done'"):
        time.sleep(0.1)
    assert (made(), len(aliases(sql, alice))) == (number, number)
