"""Rows that fail or that others would refuse, their report, and values of any length."""

import json
import re
from collections.abc import Callable
from io import BytesIO
from itertools import count
from typing import Any

import pytest
from flask import Flask
from psycopg2.errors import QueryCanceled
from psycopg2.extensions import connection

from linkmgr.core.database.statements import run
from linkmgr.features.imports import batches, job
from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.repository import links, plans
from linkmgr.repository import purge as purge_queries
from tests.conftest import BASE_URL, Client
from tests.support.archives import archive
from tests.support.bodies import everything
from tests.support.explain import rows_read
from tests.support.factories import Sql
from tests.support.imported import HEADER, Import, aliases, counts, details, sale, send, shlink
from tests.support.pages import signed_in
from tests.support.visited import purge

PAGE = "https://example.com"
MARK = "correct-horse-97"


def errors(client: Client, found: dict[str, Any]) -> list[str]:
    path = f"/api/imports/{found['id']}/errors"
    rows = client.get(path, headers={"Accept": "application/json"}).get_json()["data"]
    return [row["message"] for row in rows]


def test_no_table_has_the_password_of_a_row_that_failed(
    app: Flask, alice: Client, run_import: Import, run_jobs: Callable[[], None], sql: Sql
) -> None:
    bad = {"url": "ftp://example.com", "custom": "bad", "password": MARK}
    good = bad | {"url": PAGE, "custom": "good"}
    files: list[tuple[bytes, str]] = [
        (f"target,address,password\nftp://example.com,bad,{MARK}\n{PAGE},good,{MARK}\n".encode(), ""),
        (f"to,code word\nftp://example.com,{MARK}\n".encode(), '?mapping={"url":"to","password":"code word"}'),
        (f"target,address,password\n{PAGE},bad,x,{MARK},y\n".encode(), ""),
        (json.dumps([bad, good | {"custom": "better"}]).encode(), ""),
        (archive(links=[bad | {"id": 1, "alias": "bad"}]), ""),
    ]
    assert [run_import(alice, file, query)["failed"] for file, query in files] == [1] * len(files)
    bulk = alice.post("/api/urls/bulk", {"urls": [bad, good | {"custom": "best"}]}, headers={"Idempotency-Key": "k"})
    assert (bulk.get_json()["created"], bulk.get_json()["failed"]) == (1, 1)
    run_jobs()
    tables = sql("SELECT oid::regclass::text AS name FROM pg_class WHERE relkind = 'r' AND oid > 16383")
    assert len(tables) > 20
    for table in tables:
        marked = f"SELECT t FROM {table['name']} t WHERE position(%(mark)s IN t::text) > 0"
        assert sql(marked, mark=MARK) == sql(marked, mark=MARK.encode().hex()) == [], table
    sql("UPDATE imports SET finished = now() - interval '29 days 23 hours' RETURNING 1")
    purge(app)
    assert len(sql("SELECT FROM import_rows WHERE code IS NOT NULL")) == len(files)
    sql("UPDATE imports SET finished = now() - interval '30 days 1 hour' RETURNING 1")
    purge(app)
    assert sql("SELECT FROM import_rows") == []


def test_the_purge_reads_no_failed_rows_of_imports_that_ended_lately(
    *, app: Flask, dsn: str, alice: Client, raw: connection, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raw.cursor() as cursor:
        for days, number in ((31, 3), (29, 5000)):
            cursor.execute(
                "WITH added AS (INSERT INTO imports (user_id, state, source, failed, finished)"
                " VALUES (%s, 'done', 'shlink', %s, now() - make_interval(days => %s)) RETURNING user_id, id)"
                " INSERT INTO import_rows (user_id, import_id, number, place, file, name, lines, raw, code, message)"
                " SELECT user_id, id, n, 0, 'links', '', 1, '{}', 'invalid', '' FROM added, generate_series(1, %s) n",
                [alice.id, number, days, number],
            )
        cursor.execute("ANALYZE imports, import_rows")
    with app.app_context():
        [read] = rows_read(monkeypatch, dsn, lambda: import_rows.delete_expired(purge_queries.MAX_ROWS))
    assert read < 100
    assert sql("SELECT count(*) AS number FROM import_rows") == [{"number": 5000}]


@pytest.mark.parametrize("is_last", [False, True])
def test_a_link_that_keeps_its_host_comes_before_one_that_moves_there(
    alice: Client, run_import: Import, *, is_last: bool
) -> None:
    own = sale("case", "https://example.com/own").replace("s.example.com", BASE_URL)
    rows = [sale("case", "https://example.com/moved"), own]
    found = run_import(alice, shlink(*rows[:: -1 if is_last else 1]))
    assert errors(alice, found) == [
        f"s.example.com/case would become {BASE_URL.removeprefix('http://')}/case, which is already in use. Choose "
        "another alias, or add the domain."
    ]
    assert details(alice, "case")["longurl"] == "https://example.com/own"


def test_titles_above_255_characters_are_cut_with_a_note(alice: Client, run_import: Import) -> None:
    found = run_import(alice, shlink(sale("long").replace("Sale", "t" * 300), sale("short")))
    assert counts(found) == ("done", 2, 2, 0, 0, 0)
    assert found["message"] == "Titles that were cut to 255 characters: 1."
    assert details(alice, "long")["title"] == "t" * 255


def test_links_of_other_services_keep_aliases_of_one_character(alice: Client, run_import: Import, app: Flask) -> None:
    assert counts(run_import(alice, shlink(sale("1"), sale("a-"), sale("login")))) == ("done", 3, 2, 0, 0, 1)
    assert alice.post("/api/urls/bulk", {"urls": [{"url": PAGE, "custom": "2"}]}).get_json()["created"] == 1
    for alias in ("1", "2", "a-"):
        assert details(alice, alias)["shorturl"] == f"{BASE_URL}/{alias}"
        assert app.test_client().get(f"/{alias}").status_code == 302


def test_no_way_into_the_service_gives_an_alias_that_the_plan_denies(
    app: Flask, register: Callable[..., Client], run_import: Import, sql: Sql
) -> None:
    with app.app_context():
        plans.add("Plain", free=False, limits={"api": {"enabled": "1"}, "alias": {"enabled": "0"}})
    carol, said = register("carol", plan="Plain"), "Your plan does not include custom aliases. Ask an administrator"
    link: dict[str, Any] = {"url": PAGE, "custom": "chosen"}
    assert carol.post("/api/url/add", link).get_json()["message"].startswith(said)
    assert carol.post("/api/urls/bulk", {"urls": [link]}).get_json()["results"][0]["message"].startswith(said)
    for file in (shlink(sale("chosen")), archive(links=[link | {"id": 1, "alias": "chosen"}])):
        for rule in ("skip", "rename", "update"):
            found = run_import(carol, file, f"?on_conflict={rule}")
            assert counts(found) == ("done", 1, 0, 0, 0, 1)
            assert said in carol.get(f"/api/imports/{found['id']}/errors.csv").text
    assert aliases(sql, carol) == []


@pytest.mark.parametrize("file", ["export.csv", "export"])
@pytest.mark.parametrize("title", ["=1", "'=1", "''@x", "'-", "'plain", "-"])
def test_a_link_with_every_member_survives_export_and_import(
    *, alice: Client, bob: Client, run_import: Import, sql: Sql, title: str, file: str
) -> None:
    others = ("domain", "password", "type", "pixels", "campaign", "channel")  # secret, or other rows of the user
    link = {name: value for name, value in everything(alice, sql).items() if name not in others} | {"metatitle": title}
    link_id = alice.add("/api/url/add", link)
    exported = alice.get(f"/api/urls/{file}").data
    alice.delete(f"/api/url/{link_id}/delete")
    assert counts(run_import(bob, exported)) == ("done", 1, 1, 0, 0, 0)
    assert details(bob, link["custom"]).items() >= link.items()


def test_a_user_who_is_deleted_during_an_import_causes_no_error(
    *,
    alice: Client,
    admin: Client,
    run_jobs: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    sql: Sql,
) -> None:
    prepare = job._prepare

    def deleting(*arguments: Any) -> Any:
        prepared = prepare(*arguments)
        assert admin.delete(f"/api/user/{alice.id}/delete").status_code == 200
        return prepared

    monkeypatch.setattr(job, "_prepare", deleting)
    assert send(alice, shlink(sale("summer"))).status_code == 200
    run_jobs()
    assert (sql("SELECT FROM links"), sql("SELECT FROM import_rows"), sql("SELECT FROM jobs")) == ([], [], [])
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


def test_links_that_a_page_of_the_service_hides_are_reported(
    app: Flask, alice: Client, run_import: Import, sql: Sql
) -> None:
    line = {"id": 1, "url": PAGE, "custom": "", "alias": "console"}  # which another installation generated
    for file in (shlink(sale("console")), archive(links=[line])):
        found = run_import(alice, file)
        assert counts(found) == ("done", 1, 0, 0, 0, 1)
        assert "'console' is reserved" in alice.get(f"/api/imports/{found['id']}/errors.csv").text
    sql("INSERT INTO links (user_id, alias, url) VALUES (%(id)s, 'console', '') RETURNING 1", id=alice.id)  # older
    result = app.test_cli_runner().invoke(args=["database", "check"])
    assert result.exit_code == 0
    assert "The link /console of alice leads to a page of the service." in result.output


def test_links_of_branded_domains_are_only_reported_if_a_page_of_theirs_hides_them(
    app: Flask, alice: Client, sql: Sql
) -> None:
    host = "go.example.net"
    alice.add("/api/domain/add", {"domain": f"https://{host}"})
    for alias in ("docs", "login", "older"):
        alice.add("/api/url/add", {"url": PAGE, "custom": alias, "domain": host})
    sql("UPDATE links SET alias = 'api' WHERE alias = 'older' RETURNING 1")
    reported = app.test_cli_runner().invoke(args=["database", "check"]).output
    assert re.findall("The link (.*?) of", reported) == [f"{host}/api"]


# --- long and slow rows


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let PostgreSQL cancel statements that store the link `slow`. Return the numbers of links of all statements."""
    sizes: list[int] = []
    add = links.add_links

    def add_links(user_id: int, sent: list[Any], **options: Any) -> Any:
        sizes.append(len(sent))
        if any(link.get("alias") == "slow" for link in sent):
            run("SELECT set_config('statement_timeout', '10', true)")
            run("SELECT pg_sleep(60)")
        return add(user_id, sent, **options)

    monkeypatch.setattr(links, "add_links", add_links)
    return sizes


def test_a_row_that_takes_too_long_fails_alone(
    alice: Client, run_import: Import, slow: list[int], sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "MAX_ROWS", 16)
    names = [f"row-{n}" for n in range(60)]
    names[5] = "slow"
    found = run_import(alice, shlink(*map(sale, names)))
    assert counts(found) == ("done", 60, 59, 0, 0, 1)
    assert aliases(sql, alice) == sorted(set(names) - {"slow"})
    [error] = sql("SELECT number, code, message FROM import_rows WHERE code IS NOT NULL")
    assert error == {"number": 6, "code": "busy", "message": batches.TOO_SLOW}
    assert slow[:2] == [16, 2]


def test_a_row_that_takes_too_long_at_the_end_counts_nothing_else(
    alice: Client, run_import: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, tries = import_rows.finish, count()

    def finish_second(*args: Any) -> None:
        if next(tries) == 0:
            raise QueryCanceled
        finish(*args)

    monkeypatch.setattr(import_rows, "finish", finish_second)
    found = run_import(alice, shlink(sale("long").replace("Sale", "t" * 300)))
    assert counts(found) == ("done", 1, 0, 0, 0, 1)
    assert found["message"] == ""


def test_a_row_has_a_limited_number_of_channels(alice: Client, run_import: Import, sql: Sql) -> None:
    tags = {"many": [f"many {n}" for n in range(101)], "most": [f"most {n}" for n in range(100)], "same": ["x"] * 1000}
    lines = [{"url": "https://example.com", "custom": name, "tags": names} for name, names in tags.items()]
    found = run_import(alice, "\n".join(map(json.dumps, lines)).encode(), "?source=linkmgr")
    assert counts(found) == ("done", 3, 2, 0, 0, 1)
    [failed] = sql("SELECT message FROM import_rows WHERE code IS NOT NULL")
    assert failed["message"] == "tags must have at most 100 names."
    assert sql("SELECT count(*)::int AS number FROM channels") == [{"number": 101}], "the row that failed makes none"


def test_the_logo_of_a_qr_code_is_limited_as_in_the_api(alice: Client, run_import: Import, sql: Sql) -> None:
    lines = [
        {"id": n, "type": "text", "data": "hello", "name": "Poster", "code": f"code{n}", "channel": [],
         "background": "rgb(255,255,255)", "foreground": "rgb(0,0,0)", "logo": "x" * length}
        for n, length in enumerate((2048, 2049))
    ]  # fmt: skip
    assert counts(run_import(alice, archive(qr=lines))) == ("done", 2, 1, 0, 0, 1)
    assert sql("SELECT message FROM import_rows WHERE code IS NOT NULL") == [
        {"message": "logo must be at most 2,048 characters."}
    ]


def test_the_console_shows_the_beginning_of_long_rows(
    app: Flask, alice: Client, run_jobs: Callable[[], None], sql: Sql
) -> None:
    row = f"2024-01-31,n o,s.example.com,{'x' * 50_000},{'y' * 50_000},{'z' * 50_000},0"
    form = {"file": (BytesIO(f"{HEADER}\n{row}\n{row}\n".encode()), "links.csv")}
    browser = signed_in(app)
    with browser.post("/console/imports/new", data=form, content_type="multipart/form-data") as answer:
        draft = answer.location
    assert len(browser.get(draft).data) < 50_000
    browser.post(draft, data={"on_conflict": "skip"})
    run_jobs()
    assert len(sql("SELECT FROM import_rows WHERE code IS NOT NULL AND user_id = %(id)s", id=alice.id)) == 2
    page = browser.get(draft)
    assert "Rows that failed" in page.text
    assert len(page.data) < 50_000
