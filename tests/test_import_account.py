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
from hypothesis import given, settings
from hypothesis import strategies as st

from linkmgr.core.database import statements
from linkmgr.core.fields.qr import CODE_LENGTH
from linkmgr.features.exports.account import RESOURCES
from linkmgr.features.imports import job
from linkmgr.features.imports.files import text
from linkmgr.repository import plans
from linkmgr.visits import store as visits
from tests.conftest import Client
from tests.support.archives import archive, export, normalized, zipped
from tests.support.bodies import body_of, sent
from tests.support.factories import Sql
from tests.support.imported import Import, counts, import_of, send
from tests.support.logos import logo_file
from tests.support.members import LOGO_FILES, bodies
from tests.support.stage import Stage

_numbers = count()
KINDS = (*(kind.words.path for kind in RESOURCES.values()), "url", "qr")  # the last ones refer to others
REFERENCES = ("campaign", "splash_id", "overlay_id")
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
def restore(
    *, app: Flask, register: Callable[..., Client], admin: Client, run_jobs: Callable[[], None], run_import: Import
) -> Any:
    """Delete a user, and import the export into the account of a new one."""

    def run(owner: Client, content: bytes, *, delete: bool = True) -> Client:
        if delete:
            assert admin.delete(f"/api/user/{owner.id}/delete").status_code == 200
            run_jobs()
            with app.app_context():
                statements.run("DELETE FROM aliases WHERE owner_id IS NOT NULL")  # as in another installation
        heir = register(f"heir{next(_numbers)}")
        found = run_import(heir, content)
        failed = heir.get(f"/api/imports/{found['id']}/errors.csv").text if delete else ""
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
@settings(max_examples=4)
@given(data=st.data())
def test_an_exported_account_is_restored_exactly(
    *, app: Flask, register: Callable[..., Client], admin: Client, restore: Any, sql: Sql, data: st.DataObject
) -> None:
    owner = register(f"owner{next(_numbers)}")
    stage = Stage(owner, admin, sql)
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


@pytest.mark.parametrize("code", [token_hex(20_000), "a/b", ""], ids=["long", "slash", "empty"])
def test_a_qr_code_whose_code_no_url_can_have_gets_a_new_one(
    alice: Client, run_import: Import, sql: Sql, code: str
) -> None:
    row = {"id": 1, "type": "text", "data": "hello", "name": "Poster", "code": code}
    found = run_import(alice, archive(qr=[row]))
    assert (found["state"], found["made"]) == ("done", 1)
    assert len(sql("SELECT code FROM qrs")[0]["code"]) == CODE_LENGTH


def test_the_code_of_a_deleted_qr_code_is_given_to_its_user_only(
    alice: Client, bob: Client, run_import: Import, sql: Sql
) -> None:
    qr_id = alice.add("/api/qr/add", {"type": "text", "data": "printed"})
    [before] = sql("SELECT code, user_id FROM qrs")
    exported = export(alice)
    assert alice.delete(f"/api/qr/{qr_id}/delete").status_code == 200
    refused = run_import(alice, exported)
    [error] = alice.get(f"/api/imports/{refused['id']}/errors").get_json()["data"]
    assert (error["code"], "in your bin" in error["message"]) == ("alias_taken", True)
    assert alice.delete(f"/api/qr/{qr_id}/delete?bin=0").status_code == 200
    for client in (bob, alice):
        assert run_import(client, exported)["made"] == 1
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
    found = run_import(carol, archive(links=[link | {"url": "https://example.com"}], bio=[page | {"name": "Carol"}]))
    assert (found["made"], found["failed"]) == (2, 0)
    stored = sql("SELECT alias FROM links UNION ALL SELECT alias FROM bios")
    assert {"chosen", "carol"}.isdisjoint({row["alias"] for row in stored})


@pytest.mark.parametrize(("query", "made"), [("", 0), ("?on_conflict=rename", 1)])
def test_importing_an_account_again_changes_nothing_and_may_rename_links(
    stage: Stage, sql: Sql, run_import: Import, query: str, made: int
) -> None:
    tables = ("domains", "campaigns", "channels", "pixels", "splash_pages", "overlays", "overlay_answers", "qrs",
              "bios", "links")  # fmt: skip
    before = {table: sql(f"SELECT * FROM {table} ORDER BY id") for table in tables}
    visits = len(sql("SELECT FROM visits"))
    found = run_import(stage.alice, export(stage.alice), query)
    assert (found["state"], found["made"], found["failed"], found["visits"]) == ("done", made, 0, made)
    after = {table: sql(f"SELECT * FROM {table} ORDER BY id") for table in tables}
    link, *copies = after["links"]
    assert after | {"links": [link]} == before
    assert len(sql("SELECT FROM visits")) == visits + made
    for copy in copies:
        assert copy["alias"] == f"{link['alias']}-2"
        assert [copy[name] for name in REFERENCES] == [link[name] for name in REFERENCES]


def test_an_account_is_copied_beside_the_first_one(stage: Stage, restore: Any, sql: Sql) -> None:
    """Names that are unique over all users are new ones, or failures."""
    copy = restore(stage.alice, export(stage.alice), delete=False)
    for table in ("campaigns", "channels", "pixels", "splash_pages", "overlays", "overlay_answers", "qrs", "links"):
        numbers = sql(f"SELECT user_id, count(*) AS number FROM {table} GROUP BY user_id")
        assert {row["user_id"]: row["number"] for row in numbers} == {stage.alice.id: 1, copy.id: 1}, table
    assert len(sql("SELECT FROM domains")) == 1


EMPTY = {"manifest__json": "{}", "links__jsonl": ""}
FAR_MORE = "The zip unpacks to far more than links do. Send it unpacked."


@pytest.mark.parametrize("query", ["", "?dry_run=1"])
@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (zipped(links__csv="url\nhttps://example.com"), "This zip is not an export of an account."),
        (b"PK\x03\x04" + b"x" * 1000, "This zip is damaged."),
        (zipped(**EMPTY, **{f"file-{number}": "" for number in range(5000)}), "This zip has too many files."),
        (zipped(manifest__json="{}", links__jsonl="\n" * 20_000_000), FAR_MORE),
    ],
)  # fmt: skip
def test_other_damaged_and_hostile_zips_are_refused(
    alice: Client, sql: Sql, file: bytes, sentence: str, query: str
) -> None:
    answer = send(alice, file, query).get_json()
    assert answer["code"] == "import_unreadable"
    assert answer["message"].startswith(sentence)
    assert sql("SELECT FROM imports") == []


def test_a_zip_has_no_more_bytes_than_an_account(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_UNPACKED", 100_000)
    large = zipped(manifest__json="{}", links__jsonl="\n" * 100_001)
    assert send(alice, large).get_json()["code"] == "import_unreadable"


def test_the_part_of_a_large_zip_that_is_read_grows(
    alice: Client, one_batch: Callable[[], bool], run_jobs: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "MAX_ROWS", 300)
    lines = [
        json.dumps({"id": n, "url": f"https://example.com/{n}", "description": token_hex(499)}) for n in range(800)
    ]
    sent = zipped(manifest__json="{}", links__jsonl="\n".join(lines))
    assert len(sent) > 300_000
    number = send(alice, sent).get_json()["id"]
    shares = []
    for _ in range(2):
        assert one_batch()
        shares.append(import_of(alice, number)["percent"])
    assert 0 < shares[0] < shares[1] < 100
    run_jobs()
    found = import_of(alice, number)
    assert (found["state"], found["made"], found["percent"]) == ("done", 800, 100)


def test_a_line_that_is_too_long_fails_alone(alice: Client, run_import: Import) -> None:
    lines = [json.dumps({"id": n, "url": "https://example.com", "alias": f"alias-{n}"}) for n in range(3)]
    lines[1] = json.dumps({"id": 1, "url": f"https://example.com/{'x' * 1_000_000}", "alias": "alias-1"})
    found = run_import(alice, zipped(manifest__json="{}", links__jsonl="\n".join(lines)))
    assert counts(found) == ("done", 3, 2, 0, 0, 1)
    errors = alice.get(f"/api/imports/{found['id']}/errors.csv").text
    assert "url must be at most" in errors
    assert len(errors) < 140_000


VALUES: list[Any] = [None, True, -1, 2**70, 1.5, "x", "\0", "x" * 5000, [], [None, {}], {}, {"a": [1]}]


def test_lines_with_any_values_fail_or_are_stored(
    stage: Stage, register: Callable[..., Client], run_import: Import
) -> None:
    """Every member of every line is replaced by values of all types."""
    with zipfile.ZipFile(io.BytesIO(export(stage.alice))) as opened:
        files = {name: opened.read(name).decode() for name in opened.namelist()}
    for name, lines in files.items():
        if name.endswith(".jsonl"):
            line = json.loads(lines.splitlines()[0]) if lines else {}
            line |= {"externalid": ""} if "externalid" in line else {}  # which one link has
            broken = [line | {member: value} for member in line for value in VALUES] + [[], 5, None]
            files[name] = "\n".join([*map(json.dumps, broken), "{", ""])
    heir = register("heir")
    found = run_import(heir, zipped(**files))
    assert (found["state"], found["message"]) == ("done", "Titles that were cut to 255 characters: 2.")
    assert min(found["made"], found["failed"]) > 0
    assert send(heir, zipped(**files), "?dry_run=1").status_code == 200
