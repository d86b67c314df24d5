"""/api/imports: files that become links in the background."""

import gzip
import json
import os
import signal
import time
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.imports import job, links
from linkmgr.imports.visits import spool
from linkmgr.web import uploads
from tests.conftest import Client
from tests.factories import Sql
from tests.races import at_once
from tests.test_jobs import children

HEADER = "createdAt,shortCode,domain,longUrl,tags,title,visits"
Import = Callable[..., dict[str, Any]]


def shlink(*rows: str) -> bytes:
    """Return a CSV with the columns of Shlink."""
    return "\r\n".join([HEADER, *rows, ""]).encode()


def sale(alias: str, target: str = "https://example.com/sale", clicks: int = 0) -> str:
    return f"2024-01-31T10:00:00+00:00,{alias},s.example.com,{target},,Sale,{clicks}"


def send(client: Client, file: bytes, query: str = "") -> TestResponse:
    return client.post(f"/api/imports{query}", data=file, content_type="text/csv")


def details(client: Client, alias: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/urls?short={alias}").get_json()["details"]
    return found


def aliases(sql: Sql, client: Client) -> list[str]:
    rows = sql("SELECT alias FROM links WHERE user_id = %(id)s ORDER BY alias", id=client.id)
    return [row["alias"] for row in rows]


@pytest.fixture
def run_import(run_jobs: Callable[[], None]) -> Import:
    """Import a file, and return the state of the import at its end."""

    def run(client: Client, file: bytes, query: str = "") -> dict[str, Any]:
        answer = send(client, file, query)
        assert answer.status_code == 200, answer.text
        run_jobs()
        found: dict[str, Any] = client.get(f"/api/imports/{answer.get_json()['id']}").get_json()["data"]
        return found

    return run


COUNTS = ("state", "read", "made", "updated", "skipped", "failed")


def counts(found: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(found[name] for name in COUNTS)


# --- files


def test_an_import_keeps_alias_title_date_tags_and_clicks(alice: Client, run_import: Import) -> None:
    row = "2024-01-31T10:00:00+00:00,summer,s.example.com,https://example.com/sale,newsletter|2024,Summer sale,1204"
    found = run_import(alice, shlink(row))
    assert counts(found) == ("done", 1, 1, 0, 0, 0)
    assert (found["source"], found["seconds_left"], found["message"]) == ("shlink", None, "")
    link = details(alice, "summer")
    channels = {row["id"]: row["name"] for row in alice.get("/api/channels").get_json()["data"]["channels"]}
    assert (link["longurl"], link["title"], link["date"]) == (
        "https://example.com/sale",
        "Summer sale",
        "2024-01-31 10:00:00",
    )
    assert {channels[channel] for channel in link["channel"]} == {"newsletter", "2024"}
    assert link["imported_clicks"] == 1204
    assert alice.get(f"/api/url/{link['id']}").get_json()["data"]["clicks"] == 0, "a total includes imported clicks"


def test_a_form_and_gzip_are_files_too(alice: Client, run_jobs: Callable[[], None], sql: Sql) -> None:
    form = {"file": (BytesIO(gzip.compress(shlink(sale("zipped")))), "links.csv.gz"), "on_conflict": "rename"}
    answer = alice.post("/api/imports", data=form, content_type="multipart/form-data")
    assert answer.status_code == 200, answer.text
    run_jobs()
    found = alice.get(f"/api/imports/{answer.get_json()['id']}").get_json()["data"]
    assert (found["name"], found["on_conflict"], found["made"]) == ("links.csv.gz", "rename", 1)
    assert aliases(sql, alice) == ["zipped"]


def test_a_dry_run_shows_the_first_rows_and_stores_nothing(alice: Client, sql: Sql) -> None:
    file = shlink(sale("summer", clicks=3), sale("!"), *(sale(f"row-{n}") for n in range(20)))
    answer = send(alice, file, "?dry_run=1").get_json()
    assert (answer["data"]["source"], answer["data"]["format"]) == ("shlink", "csv")
    assert answer["data"]["columns"] == HEADER.split(",")
    first, second, *others = answer["data"]["rows"]
    assert first == {
        "number": 1,
        "link": first["link"],
        "channels": [],
        "created": "2024-01-31 10:00:00",
        "clicks": 3,
        "visits": 0,
        "problem": None,
    }
    assert first["link"] == {"url": "https://example.com/sale", "custom": "summer", "metatitle": "Sale"}
    assert "custom must be" in second["problem"]
    assert len(others) == 8
    for table in ("imports", "import_chunks", "links", "jobs", "channels"):
        assert sql(f"SELECT FROM {table}") == []


def test_unknown_columns_need_a_mapping(alice: Client, run_import: Import, sql: Sql) -> None:
    file = b"Label;Where\r\nsummer;https://example.com/sale\r\n"
    refused = send(alice, file).get_json()
    assert refused["code"] == "import_unrecognized"
    assert "Label, Where" in refused["message"]
    shown = send(alice, file, "?dry_run=1").get_json()["data"]
    assert (shown["source"], shown["columns"], shown["rows"]) == (None, ["Label", "Where"], [])
    mapping = json.dumps({"url": "Where", "custom": "Label"})
    assert counts(run_import(alice, file, f"?mapping={mapping}")) == ("done", 1, 1, 0, 0, 0)
    assert aliases(sql, alice) == ["summer"]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("?mapping=x", "mapping must be a JSON object"),
        ('?mapping={"url":"Nowhere"}', "columns that the file does not have: Nowhere"),
        ('?mapping={"target":"longUrl"}', "mapping must have only"),
        ("?on_conflict=overwrite", "on_conflict must be one of skip, rename, update"),
        ("?source=myspace", "source must be one of"),
        ("?dry_run=yes", "dry_run must be one of"),
    ],
)
def test_wrong_rules_are_refused(alice: Client, sql: Sql, query: str, problem: str) -> None:
    answer = send(alice, shlink(sale("summer")), query)
    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")
    assert problem in answer.get_json()["message"]
    assert sql("SELECT FROM imports") == []


def test_a_request_without_a_file_is_refused(alice: Client) -> None:
    assert send(alice, b"").get_json()["code"] == "file_missing"
    form = alice.post("/api/imports", data={"dry_run": "1"}, content_type="multipart/form-data")
    assert form.get_json()["code"] == "file_missing"
    broken = alice.post("/api/imports", data=b"--x\r\nnonsense", content_type="multipart/form-data")
    assert broken.get_json()["code"] == "bad_request"
    assert send(alice, b"\x00\x01\x02\xff" * 100).status_code == 400


def test_a_file_above_the_limit_is_refused(alice: Client, monkeypatch: pytest.MonkeyPatch, sql: Sql) -> None:
    monkeypatch.setattr(uploads, "MAX_FILE", 100_000)
    for framing in ({}, {"headers": {"Content-Length": "200000000"}}):
        answer = alice.post("/api/imports", data=b"x" * 200_000, content_type="text/csv", **framing)
        assert (answer.status_code, answer.get_json()["code"]) == (413, "file_too_large")
    form = {"file": (BytesIO(b"x" * 120_000), "links.csv")}
    assert alice.post("/api/imports", data=form, content_type="multipart/form-data").status_code == 413
    assert sql("SELECT FROM imports") == []


def test_a_repeated_request_with_a_large_file_imports_it_once(
    alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    file = shlink(*(sale(f"row-{n}") for n in range(2000)))
    assert len(file) > 65536
    headers = {"Idempotency-Key": "9b2d"}
    answers = [alice.post("/api/imports", data=file, content_type="text/csv", headers=headers) for _ in range(2)]
    assert answers[0].data == answers[1].data
    assert answers[1].headers["Idempotency-Replayed"] == "true"
    other = alice.post("/api/imports", data=file[:-90], content_type="text/csv", headers=headers)
    assert other.get_json()["code"] == "idempotency_key_reused"
    run_jobs()
    assert len(aliases(sql, alice)) == 2000
    assert len(sql("SELECT FROM imports")) == 1


@pytest.mark.parametrize("text", ["\\u0000", "\\ud800", "\\u202e", "x" * 100_000, "\\\\N"])
def test_texts_that_cannot_be_stored_fail_in_their_row(alice: Client, run_import: Import, text: str) -> None:
    members = ("longUrl", "shortCode", "title", "tags", "dateCreated", "domain", "visitsCount", "unknown")
    good = {"longUrl": "https://example.com/", "shortCode": "good"}
    lines = [
        json.dumps(good | {"shortCode": f"row{n}"} | {member: "TEXT"}).replace("TEXT", text)
        for n, member in enumerate(members)
    ]
    lines = [json.dumps(good), *lines, json.dumps(good | {"TEXT": "x", "shortCode": "name"}).replace("TEXT", text)]
    found = run_import(alice, "\n".join(lines).encode())
    assert (found["state"], found["message"], found["read"]) == ("done", "", len(lines))
    assert details(alice, "good")["longurl"] == "https://example.com/"
    assert alice.get(f"/api/imports/{found['id']}/errors").status_code == 200
    assert send(alice, "\n".join(lines).encode(), "?dry_run=1").status_code == 200


@pytest.mark.parametrize("name", ["a\0b.csv", "x" * 300, "../../etc/passwd", "<b>.csv"])
def test_any_file_name_is_accepted(alice: Client, name: str) -> None:
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="%b"\r\n\r\n%b\r\n--x--\r\n'
        % (name.encode("utf-8", "surrogatepass"), shlink(sale("summer")))
    )  # fmt: skip
    answer = alice.post("/api/imports", data=body, content_type="multipart/form-data; boundary=x")
    assert answer.status_code == 200, answer.text
    assert alice.get("/api/imports").get_json()["data"]["result"] == 1


# --- conflicts


def test_skip_keeps_own_links_and_fails_for_those_of_others(
    alice: Client, bob: Client, run_import: Import, sql: Sql
) -> None:
    alice.add("/api/url/add", {"url": "https://example.com/mine", "custom": "mine"})
    bob.add("/api/url/add", {"url": "https://example.com/theirs", "custom": "theirs"})
    file = shlink(sale("mine"), sale("theirs"), sale("free"), sale("free"))
    found = run_import(alice, file)
    assert counts(found) == ("done", 4, 1, 0, 2, 1)
    assert details(alice, "mine")["longurl"] == "https://example.com/mine"
    again = run_import(alice, file)
    assert counts(again) == ("done", 4, 0, 0, 3, 1)


def test_rename_adds_the_smallest_free_number(alice: Client, bob: Client, run_import: Import, sql: Sql) -> None:
    bob.add("/api/url/add", {"url": "https://example.com/theirs", "custom": "sale"})
    alice.add("/api/url/add", {"url": "https://example.com/mine", "custom": "sale-2"})
    found = run_import(alice, shlink(sale("sale"), sale("sale"), sale("sale-2"), sale("x" * 50), sale("x" * 50)),
                       "?on_conflict=rename")  # fmt: skip
    assert counts(found) == ("done", 5, 5, 0, 0, 0)
    made = {"sale-2", "sale-3", "sale-4", "sale-2-2", "x" * 50, "x" * 46 + "-2"}
    assert set(aliases(sql, alice)) == made


def test_update_writes_the_members_of_the_row(alice: Client, bob: Client, run_import: Import, sql: Sql) -> None:
    old = {"url": "https://example.com/old", "custom": "mine", "description": "kept"}
    link_id = alice.add("/api/url/add", old)
    bob.add("/api/url/add", {"url": "https://example.com/theirs", "custom": "theirs"})
    found = run_import(alice, shlink(sale("mine", clicks=7), sale("theirs"), sale("new")), "?on_conflict=update")
    assert counts(found) == ("done", 3, 1, 1, 0, 1)
    link = details(alice, "mine")
    assert (link["id"], link["longurl"], link["title"]) == (link_id, "https://example.com/sale", "Sale")
    assert (link["description"], link["imported_clicks"]) == ("kept", 7)
    assert details(bob, "theirs")["longurl"] == "https://example.com/theirs"


def test_a_link_keeps_its_domain_if_the_user_has_it(alice: Client, run_import: Import) -> None:
    alice.add("/api/domain/add", {"domain": "https://s.example.com"})
    elsewhere = sale("moved").replace("s.example.com", "other.example.com")
    assert counts(run_import(alice, shlink(sale("kept"), elsewhere))) == ("done", 2, 2, 0, 0, 0)
    found = alice.get("/api/urls?short=https://s.example.com/kept").get_json()
    assert found["details"]["domain"] == "https://s.example.com"
    assert details(alice, "moved")["domain"] == "http://127.0.0.1:5000"


# --- failures


def test_failed_rows_are_a_csv_that_can_be_mended_and_sent_again(alice: Client, run_import: Import, sql: Sql) -> None:
    rows = [sale("good"), sale("b"), sale("ftp", "ftp://example.com"), sale("formula").replace("Sale", "=1+1")]
    found = run_import(alice, shlink(*rows))
    assert counts(found) == ("done", 4, 2, 0, 0, 2)
    path = f"/api/imports/{found['id']}/errors"
    as_json = alice.get(path, headers={"Accept": "application/json"}).get_json()["data"]
    assert [(row["number"], row["code"], row["raw"]["shortCode"]) for row in as_json] == [
        (2, "invalid", "b"),
        (3, "invalid", "ftp"),
    ]
    answer = alice.get(path)
    assert answer.mimetype == "text/csv"
    header, *lines = answer.text.splitlines()
    assert header == f"{HEADER},error"
    assert "url must be a URL that begins with http:// or https://" in lines[1]
    mended = answer.text.replace(",b,", ",better,").replace("ftp://", "https://")
    assert counts(run_import(alice, mended.encode())) == ("done", 2, 2, 0, 0, 0)
    assert aliases(sql, alice) == ["better", "formula", "ftp", "good"]


def test_a_row_that_the_database_refuses_fails_alone(
    register: Callable[..., Client], run_import: Import, sql: Sql
) -> None:
    free = register("free", plan="Free")
    sql("UPDATE plans SET limits = (limits::jsonb || '{\"links\": 3}')::json WHERE name = 'Free' RETURNING 1")
    try:
        found = run_import(free, shlink(*(sale(f"row-{n}") for n in range(5))))
    finally:
        sql("UPDATE plans SET limits = (limits::jsonb || '{\"links\": 100}')::json WHERE name = 'Free' RETURNING 1")
    assert counts(found) == ("done", 5, 3, 0, 0, 2)
    assert {row["code"] for row in sql("SELECT code FROM import_errors")} == {"plan_limit"}


def test_two_imports_at_once_stay_within_the_plan(
    app: Flask, register: Callable[..., Client], sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "MAX_ROWS", 10)
    free = register("free", plan="Free")
    ids = [
        send(free, shlink(*(sale(f"{name}-{n}") for n in range(80)))).get_json()["id"] for name in ("first", "second")
    ]

    def run(number: int) -> None:
        with app.app_context():
            while not job.run_batch(free.id, ids[number]):
                pass

    at_once(2, run)
    assert len(aliases(sql, free)) == 100
    rows = [free.get(f"/api/imports/{import_id}").get_json()["data"] for import_id in ids]
    assert (sum(row["made"] for row in rows), sum(row["failed"] for row in rows)) == (100, 60)


# --- the job


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MAX_ROWS", 20)


@pytest.mark.usefixtures("small_batches")
def test_a_process_that_is_killed_between_batches_loses_and_repeats_no_row(
    alice: Client, one_batch: Callable[[], bool], run_jobs: Callable[[], None], sql: Sql
) -> None:
    import_id = send(alice, shlink(*(sale(f"row-{n}", clicks=n) for n in range(110)))).get_json()["id"]
    for _ in range(3):
        assert one_batch()
        job.forget()  # the next process opens the file again
    found = alice.get(f"/api/imports/{import_id}").get_json()["data"]
    assert counts(found) == ("running", 60, 60, 0, 0, 0)
    assert found["seconds_left"] is not None
    run_jobs()
    assert counts(alice.get(f"/api/imports/{import_id}").get_json()["data"]) == ("done", 110, 110, 0, 0, 0)
    assert len(aliases(sql, alice)) == 110
    assert sql("SELECT FROM import_chunks") == []


@pytest.mark.usefixtures("small_batches")
def test_two_processes_that_run_the_same_job_store_each_row_once(app: Flask, alice: Client, sql: Sql) -> None:
    """One of them was suspended past its lease."""
    import_id = send(alice, shlink(*(sale(f"row-{n}") for n in range(200)))).get_json()["id"]

    def run(_: int) -> None:
        with app.app_context():
            while not job.run_batch(alice.id, import_id):
                pass

    at_once(4, run)
    found = alice.get(f"/api/imports/{import_id}").get_json()["data"]
    assert counts(found) == ("done", 200, 200, 0, 0, 0)
    assert len(aliases(sql, alice)) == 200


@pytest.mark.usefixtures("small_batches")
def test_a_cancelled_import_keeps_the_links_that_it_made(
    alice: Client, one_batch: Callable[[], bool], run_jobs: Callable[[], None], sql: Sql
) -> None:
    import_id = send(alice, shlink(*(sale(f"row-{n}") for n in range(100)))).get_json()["id"]
    assert one_batch()
    answer = alice.delete(f"/api/imports/{import_id}")
    assert answer.get_json()["message"] == "Import has been cancelled."
    run_jobs()
    found = alice.get(f"/api/imports/{import_id}").get_json()["data"]
    assert counts(found) == ("cancelled", 20, 20, 0, 0, 0)
    assert found["finished"]
    assert len(aliases(sql, alice)) == 20
    assert sql("SELECT FROM import_chunks") == sql("SELECT FROM jobs") == []
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
    assert found["message"] == "The import stopped behind row 0 because of an error on our side."


def test_a_user_has_a_limited_number_of_unfinished_imports(alice: Client, bob: Client) -> None:
    file = shlink(sale("summer"))
    answers = at_once(5, lambda _: send(alice, file).status_code)
    assert sorted(answers) == [200, 200, 200, 409, 409]
    assert send(bob, file).status_code == 200


def test_the_token_of_a_service_is_encrypted_and_deleted_at_the_end(
    alice: Client, run_jobs: Callable[[], None], sql: Sql
) -> None:
    service = {"source": "shlink", "address": "https://s.invalid", "token": "a-secret"}
    import_id = alice.post("/api/imports", service).get_json()["id"]
    [stored] = sql("SELECT token FROM imports")
    assert stored["token"]
    assert "a-secret" not in stored["token"]
    run_jobs()
    assert sql("SELECT token FROM imports") == [{"token": None}]
    found = alice.get(f"/api/imports/{import_id}").get_json()["data"]
    assert found["state"] == "failed"
    assert found["message"].endswith(".")


# --- visits

DUMP = """\
CREATE TABLE `yourls_url` (
  `keyword` varchar(100) NOT NULL,
  `url` text NOT NULL,
  `title` text,
  `timestamp` timestamp NOT NULL DEFAULT current_timestamp(),
  `ip` varchar(41) NOT NULL,
  `clicks` int(10) unsigned NOT NULL
);
INSERT INTO `yourls_url` VALUES
('{alias}','https://example.com/sale','Sale','2024-01-31 10:00:00','192.0.2.1',{clicks});
CREATE TABLE `yourls_log` (
  `click_id` int(11) NOT NULL,
  `click_time` datetime NOT NULL,
  `shorturl` varchar(200) NOT NULL,
  `referrer` varchar(200) NOT NULL,
  `user_agent` varchar(255) NOT NULL,
  `ip_address` varchar(41) NOT NULL,
  `country_code` char(2) NOT NULL
);
INSERT INTO `yourls_log` VALUES {visits};
"""
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"


def yourls(alias: str, number: int, clicks: int) -> bytes:
    visits = ",".join(
        f"({n},'2024-02-{1 + n % 28:02} 12:00:00','{alias}','https://t.co/x','{AGENT}','192.0.2.1','DE')"
        for n in range(number)
    )
    return DUMP.format(alias=alias, clicks=clicks, visits=visits).encode()


def test_visits_of_the_source_are_stored_once_with_exact_totals(
    alice: Client, one_batch: Callable[[], bool], run_jobs: Callable[[], None], monkeypatch: Any, sql: Sql
) -> None:
    monkeypatch.setattr(job, "MAX_ROWS", 50)
    import_id = send(alice, yourls("summer", 120, 200)).get_json()["id"]
    for _ in range(4):
        assert one_batch()
        job.forget()
    run_jobs()
    found = alice.get(f"/api/imports/{import_id}").get_json()["data"]
    assert (found["state"], found["made"], found["visits"]) == ("done", 1, 120)
    link = details(alice, "summer")
    statistics = alice.get(f"/api/url/{link['id']}").get_json()["data"]
    assert (statistics["clicks"], link["imported_clicks"]) == (120, 80)
    assert statistics["topCountries"] == {"Germany": "120"}
    assert statistics["topReferrers"] == {"t.co": "120"}
    assert statistics["topBrowsers"] == {"Firefox": "120"}
    assert sql("SELECT sum(visits)::int AS visits FROM target_quarters") == [{"visits": 120}]
    assert sql("SELECT FROM import_references") == []
    assert sql("SELECT FROM visit_spools WHERE name = %(name)s", name=spool(import_id)) == []


def test_visits_of_a_link_that_was_skipped_are_not_repeated(alice: Client, run_import: Import) -> None:
    file = yourls("summer", 3, 3)
    assert run_import(alice, file)["visits"] == 3
    assert run_import(alice, file)["visits"] == 0
    link = details(alice, "summer")
    assert alice.get(f"/api/url/{link['id']}").get_json()["data"]["clicks"] == 3


@pytest.mark.slow
@pytest.mark.alone
def test_an_import_continues_after_its_worker_was_killed(alice: Client, serve: Callable[..., str], sql: Sql) -> None:
    number = 50_000
    before = set(children(os.getpid()))
    serve("--workers=2")
    [master] = set(children(os.getpid())) - before
    import_id = send(alice, shlink(*(sale(f"row-{n}") for n in range(number)))).get_json()["id"]

    def made() -> int:
        return int(sql("SELECT made FROM imports WHERE id = %(id)s", id=import_id)[0]["made"])

    for part in (1000, 20_000):
        while made() < part:
            time.sleep(0.05)
        for worker in children(master):
            os.kill(worker, signal.SIGKILL)
        sql("UPDATE jobs SET due = now() RETURNING 1")  # expire the lease
    while not sql("SELECT FROM imports WHERE state = 'done'"):
        time.sleep(0.1)
    assert (made(), len(aliases(sql, alice))) == (number, number)
