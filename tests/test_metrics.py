"""/metrics: counters over all processes, and access to them."""

import json
import re
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError

import pytest
from flask import Flask
from prometheus_client.parser import text_string_to_metric_families
from werkzeug.test import TestResponse

from linkmgr.core.database import jobs
from linkmgr.core.metrics import Metrics
from linkmgr.core.settings import RELEASE
from linkmgr.features.webhooks.worker import Dispatcher
from linkmgr.visits.spool import Spool
from tests.conftest import ROOT, Client
from tests.support.factories import Sql, link
from tests.support.receivers import subscribe
from tests.support.targets import FIREFOX, wait_until

TOKEN = "a-token-of-the-tests"
Samples = dict[tuple[str, ...], float]


def samples(text: str) -> Samples:
    """Return the samples by name and label values (le, method, route, status)."""
    families = text_string_to_metric_families(text)
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def scrape(client: Client) -> Samples:
    answer = client.http.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    return samples(answer.text)


@pytest.fixture
def measured(make_app: Callable[..., Flask], app: Flask, tmp_path: Path) -> Flask:
    settings = app.extensions["linkmgr_settings"]
    (tmp_path / "secret_key").write_text(app.config["SECRET_KEY"])
    assert settings.metrics_token == ""
    return make_app(metrics_token=TOKEN, data_dir=str(tmp_path))


def test_requests_are_counted_by_route_method_and_status(measured: Flask, register: Callable[..., Client]) -> None:
    alice = register("alice", via=measured)
    alice.get("/api/url/1")
    alice.get("/api/url/2")
    alice.get("/api/pixels")
    alice.post("/api/pixels")
    alice.get("/api/nothing?at=all")
    found = scrape(alice)
    requests = {key[1:]: value for key, value in found.items() if key[0] == "linkmgr_requests_total"}
    assert requests == {
        ("GET", "/api/url/<id:link_id>", "404"): 2,
        ("GET", "/api/pixels", "200"): 1,
        ("any", "", "405"): 1,
        ("any", "", "404"): 1,
    }
    assert found["linkmgr_request_seconds_count", "GET", "/api/url/<id:link_id>"] == 2
    assert found["linkmgr_request_seconds_bucket", "+Inf", "GET", "/api/url/<id:link_id>"] == 2
    assert 0 < found["linkmgr_request_seconds_sum", "GET", "/api/url/<id:link_id>"] < 60
    assert scrape(alice)["linkmgr_requests_total", "GET", "/metrics", "200"] == 1


def test_internal_events_are_counted(
    make_app: Callable[..., Flask], measured: Flask, register: Callable[..., Client], tmp_path: Path
) -> None:
    limited = make_app(metrics_token=TOKEN, data_dir=str(tmp_path), rate_limit="3 per day")
    alice = register("alice", plan="Free", via=limited)
    link = alice.post("/api/url/add", {"url": "https://example.com/"}).get_json()["shorturl"]
    assert [alice.get("/api/account").status_code for _ in range(3)] == [200, 200, 429]
    alice.http.get(link, headers={"User-Agent": FIREFOX})
    found = scrape(register("bob", via=measured))
    assert found[("linkmgr_limiter_refusals_total",)] == 1
    wait_until(lambda: scrape(alice)[("linkmgr_visits_recorded_total",)] == 1)
    assert found[("linkmgr_visits_lost_total",)] == 0
    assert found[("linkmgr_database_connections_opened_total",)] > 0
    assert found[("linkmgr_database_connections_open",)] > found[("linkmgr_database_connections_in_use",)] >= 0


def test_every_metric_is_documented(measured: Flask, tmp_path: Path) -> None:
    client = Client(measured.test_client())
    client.get("/api/account")
    assert ("linkmgr_backup_age_seconds",) not in scrape(client)
    for command in (["database", "backup", str(tmp_path / "dump")], ["visits", "purge"]):
        measured.test_cli_runner().invoke(args=command)
    metrics = scrape(client)
    assert all(0 <= metrics[f"linkmgr_{name}_age_seconds",] < 60 for name in ("backup", "purge"))
    names = {name for name, *_ in metrics} | {"linkmgr_replica_in_use", "linkmgr_replica_lag_seconds"}
    served = {re.sub("(?<=_request_seconds)_.*", "", name) for name in names}
    assert set(re.findall(r"`(linkmgr_\w+)`", (ROOT / "deploy/README.md").read_text())) == served
    for file in ("dashboard.json", "rules.yml"):
        asked = set(re.findall(r"\blinkmgr_\w+", (ROOT / "deploy/prometheus" / file).read_text()))
        assert set() < asked <= names


def test_what_waits_and_what_fails_is_reported(
    measured: Flask, register: Callable[..., Client], tmp_path: Path, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = register("alice", via=measured)
    subscribe(alice, "http://127.0.0.1:1/", "link.created")
    link(sql, alice.id)
    waiting = Spool.create(tmp_path / "visits")
    waiting.append(b'{"at": 1}\n')
    waiting.append(b'{"at": 2}\n')
    sql("INSERT INTO jobs (task, argument, attempts) SELECT 'broken', '{}', 5 RETURNING id")
    found = scrape(alice)
    assert [found[f"linkmgr_{name}",] for name in ("visits_waiting", "jobs_waiting", "jobs_failing")] == [2, 1, 1]
    assert found["linkmgr_visits_waiting_seconds",] > found["linkmgr_jobs_waiting_seconds",] > 0
    assert found["linkmgr_events_waiting_seconds",] > 0
    assert found["linkmgr_worker_memory_bytes", "0"] > 1 << 20
    assert found["linkmgr_build_info", RELEASE] == 1
    monkeypatch.setitem(measured.extensions["linkmgr_jobs"].handlers, "broken", jobs.Handler(lambda _: 1 / 0 > 0))
    with measured.app_context():
        Dispatcher().run(threading.Event())
        jobs.run_next(lambda _: False)
    waiting.delete()
    found = scrape(alice)
    names = ("delivery_failures_total", "deliveries_waiting", "job_failures_total", "events_waiting_seconds")
    assert [found[f"linkmgr_{name}",] for name in names] == [1, 1, 1, 0]


def test_without_the_token_no_metrics_are_returned(measured: Flask, app: Flask) -> None:
    def ask(of: Flask, given: str | None) -> TestResponse:
        headers = {} if given is None else {"Authorization": given}
        return of.test_client().get("/metrics", headers=headers | {"Accept": "text/html"})

    for given in (None, "", TOKEN, f"Bearer {TOKEN}x", "Bearer \xe9"):
        answer = ask(measured, given)
        assert (answer.status_code, answer.get_json()["error"]) == (401, 1)
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert ask(app, f"Bearer {TOKEN}").status_code == 404, "no metrics without a token in the settings"
    assert not (Path(app.extensions["linkmgr_settings"].data_dir) / "metrics").exists()


def test_while_the_database_is_unavailable_the_counters_are_returned(
    make_app: Callable[..., Flask], tmp_path: Path
) -> None:
    lost = make_app(
        metrics_token=TOKEN, data_dir=str(tmp_path), database_url="postgresql://postgres@127.0.0.1:1/linkmgr"
    )
    client = Client(lost.test_client())
    assert client.get("/api/account").status_code == 503
    found = scrape(client)
    assert found["linkmgr_requests_total", "GET", "/api/account", "503"] == 1
    assert ("linkmgr_database_connections_open",) not in found


def test_a_process_continues_the_counters_of_a_dead_one(measured: Flask, app: Flask, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    first, second = Metrics(measured, folder), Metrics(measured, folder)
    first.count("visits_lost", 2)
    second.count("visits_lost", 3)
    assert sorted(path.name for path in folder.iterdir()) == ["0.cells", "1.cells"]
    del first
    third = Metrics(measured, folder)
    third.count("visits_lost", 4)
    assert sorted(path.name for path in folder.iterdir()) == ["0.cells", "1.cells"]
    lost = next(family for family in second.collect() if family.name == "linkmgr_visits_lost")
    assert lost.samples[0].value == 9


def test_a_file_of_another_version_is_replaced(measured: Flask, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "0.cells").write_bytes(b"\xff" * 8000)
    counting = Metrics(measured, folder)
    assert {sample.value for family in counting.collect() for sample in family.samples} == {0}
    counting.count("visits_recorded", 1)
    recorded = next(iter(counting.collect()))
    assert (recorded.name, recorded.samples[0].value) == ("linkmgr_visits_recorded", 1)


def test_every_worker_reports_the_counters_of_all(
    serve: Callable[..., str], app: Flask, alice: Client, tmp_path: Path
) -> None:
    (tmp_path / "secret_key").write_text(app.config["SECRET_KEY"])
    base = serve("--workers", "3", metrics_token=TOKEN, data_dir=str(tmp_path), rate_limit="1000 per minute")

    def ask(path: str, token: str) -> str:
        request = urllib.request.Request(base + path, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())

    with ThreadPoolExecutor(8) as callers:
        list(callers.map(lambda _: ask("/api/account", str(alice.key)), range(60)))
        scraped = list(callers.map(lambda _: samples(ask("/metrics", TOKEN)), range(12)))
    assert {found["linkmgr_requests_total", "GET", "/api/account", "200"] for found in scraped} == {60}
    with pytest.raises(HTTPError) as refused:
        ask("/metrics", "wrong")
    assert json.loads(refused.value.read())["error"] == 1


def test_the_counter_file_is_allocated_on_the_disk(
    measured: Flask, register: Callable[..., Client], tmp_path: Path
) -> None:
    """Writing to a sparse file would end the process when the disk is full."""
    register("alice", via=measured).get("/api/pixels")
    found = (tmp_path / "metrics/0.cells").stat()
    assert found.st_blocks * 512 >= found.st_size


def test_requests_are_answered_when_the_counters_cannot_be_stored(
    measured: Flask, register: Callable[..., Client], tmp_path: Path
) -> None:
    (tmp_path / "metrics").write_text("")
    assert register("alice", via=measured).get("/api/pixels").status_code == 200
