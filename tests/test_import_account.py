"""import(export(account)) == account, for accounts with rows of all kinds."""

import io
import json
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from secrets import token_hex
from typing import Any

import orjson
import pytest
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkmgr.db import statements
from linkmgr.imports import job, storing
from linkmgr.imports.files import text
from linkmgr.repository import plans, visits
from tests.conftest import Client
from tests.support.archives import export, normalized, zipped
from tests.support.bodies import body_of, sent
from tests.support.factories import Sql
from tests.support.imported import Import
from tests.support.logos import logo_file
from tests.support.members import LOGO_FILES, bodies
from tests.support.stage import Stage

_numbers = count()
KINDS = ("domain", "campaign", "channel", "pixel", "splash", "overlay", "url", "qr", "bio")
NOW = datetime.now(UTC).replace(microsecond=0)
AGES = st.floats(0, 80 * 86400).map(lambda seconds: (NOW - timedelta(seconds=seconds)).timestamp())
VISITS = st.lists(
    st.fixed_dictionaries(
        {
            "at": AGES,
            "visitor": st.sampled_from(["", "00" * 16, "ab" * 16]),
            "country": st.sampled_from(["Germany", "Unknown"]),
            "referrer": st.sampled_from(["t.co", "l.facebook.com", "Direct, email and other", "x.example"]),
            "browser": st.sampled_from(["Firefox", "Googlebot"]),
            "os": st.just("Linux"),
            "city": st.sampled_from(["Berlin", "Unknown"]),
            "device": st.sampled_from(["desktop", "Unknown"]),
            "language": st.sampled_from(["German", "Unknown"]),
        }
    ).map(lambda visit: visit | {"bot": visit["browser"] == "Googlebot"}),
    max_size=12,
)
SOCIAL = {"t.co": "twitter", "l.facebook.com": "facebook"}


@pytest.fixture
def restore(app: Flask, register: Callable[..., Client], admin: Client, run_jobs: Callable[[], None]) -> Any:
    """Delete a user, and import the export into the account of a new one."""

    def run(owner: Client, archive: bytes, *, delete: bool = True) -> Client:
        if delete:
            assert admin.delete(f"/api/user/{owner.id}/delete").status_code == 200
            run_jobs()
            with app.app_context():
                statements.run("DELETE FROM retired_codes")  # as in another installation
        heir = register(f"heir{next(_numbers)}")
        answer = heir.post("/api/imports", data=archive, content_type="application/zip")
        assert answer.status_code == 200, answer.text
        run_jobs()
        found = heir.get(f"/api/imports/{answer.get_json()['id']}").get_json()["data"]
        failed = heir.get(f"/api/imports/{answer.get_json()['id']}/errors").text if delete else ""
        assert (found["state"], found["failed"] if delete else 0) == ("done", 0), (found, failed)
        return heir

    return run


def record_visits(app: Flask, owner: Client, tracked_id: int, drawn: list[dict[str, Any]]) -> None:
    rows = [
        visit | {"tracked_id": tracked_id, "user_id": owner.id, "social": SOCIAL.get(visit["referrer"])}
        for visit in drawn
    ]
    with app.app_context():
        text = orjson.dumps(rows).decode()
        visits.create_partitions_for(text)
        visits.add(f"drawn-{next(_numbers)}", 0, len(rows), text)


@pytest.mark.slow
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_an_exported_account_is_restored_exactly(
    *, app: Flask, register: Callable[..., Client], admin: Client, restore: Any, sql: Sql, data: st.DataObject
) -> None:
    owner = register(f"owner{next(_numbers)}")
    stage = Stage(owner, admin, sql)
    sql("DELETE FROM visits RETURNING 1")  # they are in no totals
    for name in LOGO_FILES:
        logo_file(owner, name.removesuffix(".png"))
    for word in KINDS:
        schema = body_of(word, "/add")
        assert schema
        for _ in range(data.draw(st.integers(0, 3))):
            owner.post(f"/api/{word}/add", sent(data.draw(bodies(schema, stage))))
    targets = sql("SELECT id FROM links UNION ALL SELECT id FROM qrs")
    for target in targets:
        record_visits(app, owner, target["id"], data.draw(VISITS))
    before = export(owner)
    heir = restore(owner, before)
    assert normalized(export(heir)) == normalized(before)
    admin.delete(f"/api/user/{heir.id}/delete")


def test_the_code_of_a_deleted_qr_code_is_given_to_its_user_only(
    alice: Client, bob: Client, run_import: Import, sql: Sql
) -> None:
    qr_id = alice.add("/api/qr/add", {"type": "text", "data": "printed"})
    [before] = sql("SELECT code, user_id FROM qrs")
    archive = export(alice)
    assert alice.delete(f"/api/qr/{qr_id}/delete").status_code == 200
    for client in (bob, alice):
        assert run_import(client, archive)["made"] == 1
    codes = {row["user_id"]: row["code"] for row in sql("SELECT code, user_id FROM qrs")}
    assert codes[alice.id] == before["code"]
    assert codes[bob.id] != before["code"]


def test_an_alias_in_an_export_needs_the_feature_of_the_plan(
    app: Flask, register: Callable[..., Client], run_import: Import, sql: Sql
) -> None:
    with app.app_context():
        plans.add("Plain", free=False, limits={"api": {"enabled": "1"}, "alias": {"enabled": "0"}})
    carol = register("carol", plan="Plain")
    link, page = ({"id": 1, "alias": alias, "custom": ""} for alias in ("chosen", "carol"))
    archive = zipped(
        manifest__json="{}",
        links__jsonl=json.dumps(link | {"url": "https://example.com"}),
        bio__jsonl=json.dumps(page | {"name": "Carol"}),
    )
    found = run_import(carol, archive)
    assert (found["made"], found["failed"]) == (2, 0)
    stored = sql("SELECT alias FROM links UNION ALL SELECT alias FROM bios")
    assert {"chosen", "carol"}.isdisjoint({row["alias"] for row in stored})


def test_importing_an_account_again_changes_nothing(stage: Stage, sql: Sql, run_jobs: Callable[[], None]) -> None:
    archive = export(stage.alice)
    tables = ("links", "domains", "campaigns", "channels", "pixels", "splash_pages", "overlays", "overlay_answers",
              "qrs", "bios", "visits")  # fmt: skip
    before = {table: sql(f"SELECT * FROM {table}") for table in tables}
    answer = stage.alice.post("/api/imports", data=archive, content_type="application/zip")
    run_jobs()
    found = stage.alice.get(f"/api/imports/{answer.get_json()['id']}").get_json()["data"]
    assert (found["state"], found["made"], found["failed"], found["visits"]) == ("done", 0, 0, 0)
    assert {table: sql(f"SELECT * FROM {table}") for table in tables} == before


def test_importing_an_account_again_renames_links_only(stage: Stage, sql: Sql, run_import: Import) -> None:
    tables = ("domains", "campaigns", "channels", "pixels", "splash_pages", "overlays", "qrs", "bios")
    before = {table: sql(f"SELECT * FROM {table}") for table in tables}
    found = run_import(stage.alice, export(stage.alice), "?on_conflict=rename")
    assert (found["state"], found["made"], found["failed"]) == ("done", 1, 0)
    assert {table: sql(f"SELECT * FROM {table}") for table in tables} == before
    link, copy = sql("SELECT * FROM links ORDER BY id")
    assert copy["alias"] == f"{link['alias']}-2"
    for name in ("campaign_id", "splash_id", "overlay_id"):
        assert copy[name] == link[name], name


def test_an_account_is_copied_beside_the_first_one(stage: Stage, restore: Any, sql: Sql) -> None:
    """Names that are unique over all users are new ones, or failures."""
    copy = restore(stage.alice, export(stage.alice), delete=False)
    for table in ("campaigns", "channels", "pixels", "splash_pages", "overlays", "overlay_answers", "qrs", "links"):
        numbers = sql(f"SELECT user_id, count(*) AS number FROM {table} GROUP BY user_id")
        assert {row["user_id"]: row["number"] for row in numbers} == {stage.alice.id: 1, copy.id: 1}, table
    assert len(sql("SELECT FROM domains")) == 1


def test_a_process_that_is_killed_repeats_no_line(
    stage: Stage, restore: Any, monkeypatch: pytest.MonkeyPatch, sql: Sql
) -> None:
    sql("DELETE FROM visits RETURNING 1")  # they are in no totals
    archive = export(stage.alice)
    expected = normalized(archive)
    monkeypatch.setattr(storing, "MAX_ROWS", 1)
    prepare = storing.prepare

    def reopened(*arguments: Any) -> Any:
        job.forget()
        return prepare(*arguments)

    monkeypatch.setattr(storing, "prepare", reopened)
    heir = restore(stage.alice, archive)
    assert normalized(export(heir)) == expected


def test_other_and_damaged_zips_are_refused(alice: Client, sql: Sql) -> None:
    for file, sentence in {
        zipped(links__csv="url\nhttps://example.com"): "This zip is not an export of an account.",
        b"PK\x03\x04" + b"x" * 1000: "This zip is damaged.",
    }.items():
        for query in ("", "?dry_run=1"):
            answer = alice.post(f"/api/imports{query}", data=file, content_type="application/zip")
            assert answer.get_json()["code"] == "import_unreadable"
            assert answer.get_json()["message"].startswith(sentence)
    assert sql("SELECT FROM imports") == []


def test_a_zip_has_no_more_files_and_bytes_than_an_account(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    many = zipped(manifest__json="{}", links__jsonl="", **{f"file-{number}": "" for number in range(5000)})
    answer = alice.post("/api/imports", data=many, content_type="application/zip")
    assert answer.get_json()["message"].startswith("This zip has too many files.")
    monkeypatch.setattr(text, "MAX_UNPACKED", 100_000)
    large = zipped(manifest__json="{}", links__jsonl="\n" * 100_001)
    answer = alice.post("/api/imports", data=large, content_type="application/zip")
    assert answer.get_json()["code"] == "import_unreadable"


def test_the_part_of_a_large_zip_that_is_read_grows(
    alice: Client, one_batch: Callable[[], bool], run_jobs: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "MAX_ROWS", 300)
    lines = [
        json.dumps({"id": n, "url": f"https://example.com/{n}", "description": token_hex(499)}) for n in range(800)
    ]
    sent = zipped(manifest__json="{}", links__jsonl="\n".join(lines))
    assert len(sent) > 300_000
    number = alice.post("/api/imports", data=sent, content_type="application/zip").get_json()["id"]
    shares = []
    for _ in range(2):
        assert one_batch()
        shares.append(alice.get(f"/api/imports/{number}").get_json()["data"]["percent"])
    assert 0 < shares[0] < shares[1] < 100
    run_jobs()
    found = alice.get(f"/api/imports/{number}").get_json()["data"]
    assert (found["state"], found["made"], found["percent"]) == ("done", 800, 100)


@pytest.mark.parametrize("text", ["0", "\n", "{}\n"])
def test_a_zip_that_unpacks_to_far_more_than_an_account_is_refused(alice: Client, text: str) -> None:
    sent = zipped(manifest__json="{}", links__jsonl=text * (20_000_000 // len(text)))
    answer = alice.post("/api/imports", data=sent, content_type="application/zip")
    assert answer.get_json()["message"] == "The zip unpacks to far more than links do. Send it unpacked."


def test_a_line_that_is_too_long_fails_alone(alice: Client, run_jobs: Callable[[], None]) -> None:
    lines = [json.dumps({"id": n, "url": "https://example.com", "alias": f"alias-{n}"}) for n in range(3)]
    lines[1] = json.dumps({"id": 1, "url": f"https://example.com/{'x' * 1_000_000}", "alias": "alias-1"})
    sent = zipped(manifest__json="{}", links__jsonl="\n".join(lines))
    answer = alice.post("/api/imports", data=sent, content_type="application/zip")
    run_jobs()
    number = answer.get_json()["id"]
    found = alice.get(f"/api/imports/{number}").get_json()["data"]
    assert (found["state"], found["read"], found["made"], found["failed"]) == ("done", 3, 2, 1)
    errors = alice.get(f"/api/imports/{number}/errors").get_data(as_text=True)
    assert "Line 2 of links.jsonl is longer than 128 KiB." in errors
    assert len(errors) < 2000


VALUES: list[Any] = [None, True, -1, 2**70, 1.5, "x", "\0", "x" * 5000, [], [None, {}], {}, {"a": [1]}]


def test_lines_with_any_values_fail_or_are_stored(
    stage: Stage, register: Callable[..., Client], run_jobs: Callable[[], None]
) -> None:
    """Every member of every line is replaced by values of all types."""
    with zipfile.ZipFile(io.BytesIO(export(stage.alice))) as opened:
        files = {name: opened.read(name).decode() for name in opened.namelist()}
    for name, lines in files.items():
        if name.endswith(".jsonl"):
            line = json.loads(lines.splitlines()[0]) if lines else {}
            broken = [line | {member: value} for member in line for value in VALUES] + [[], 5, None]
            files[name] = "\n".join([*map(json.dumps, broken), "{", ""])
    heir = register("heir")
    answer = heir.post("/api/imports", data=zipped(**files), content_type="application/zip")
    assert answer.status_code == 200
    run_jobs()
    found = heir.get(f"/api/imports/{answer.get_json()['id']}").get_json()["data"]
    assert (found["state"], found["message"]) == ("done", "")
    assert found["made"] > 0
    assert found["failed"] > 0
    assert heir.post("/api/imports?dry_run=1", data=zipped(**files), content_type="application/zip").status_code == 200
