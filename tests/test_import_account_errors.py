"""Rows of an exported account that failed: their CSV is mended and imported."""

import csv
import io
import json
from collections.abc import Callable
from secrets import token_hex
from typing import Any

import pytest
from flask import Flask

from linkmgr.features.exports.account import RESOURCES
from linkmgr.features.imports import job
from tests.conftest import Client
from tests.support.archives import archive, export, zipped
from tests.support.factories import Sql
from tests.support.imported import Import, details, import_of, send
from tests.support.pages import signed_in
from tests.support.stage import Stage

Line = dict[str, Any]


def table(*rows: list[str]) -> bytes:
    """Return the CSV of lines that failed, as spreadsheets of many countries write it."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";").writerows([["file", "line", "error"], *rows])
    return text.getvalue().encode()


def line_of(kind: str, record: Line) -> list[str]:
    return [f"{kind}.jsonl", json.dumps(record), "The reason."]


@pytest.fixture
def failures(register: Callable[..., Client], run_jobs: Callable[[], None]) -> Callable[..., tuple[Client, str]]:
    """Import a zip into a new account. Return its client, and the CSV of the rows that failed."""

    def run(content: bytes) -> tuple[Client, str]:
        heir = register("heir")
        answer = send(heir, content)
        run_jobs()
        return heir, heir.get(f"/api/imports/{answer.get_json()['id']}/errors.csv").text

    return run


def test_an_answer_that_is_too_large_fails(alice: Client, run_import: Import, sql: Sql) -> None:
    overlay = {"id": 1, "name": "Sale", "type": "contact"}
    answers = [{"overlay": 1, "answer": {"message": "x" * size}} for size in (10_000, 17_000)]
    found = run_import(alice, archive(overlays=[overlay], answers=answers))
    assert (found["state"], found["failed"]) == ("done", 1)
    assert "at most 16 KiB" in alice.get(f"/api/imports/{found['id']}/errors.csv").text
    assert len(sql("SELECT FROM overlay_answers")) == 1


def test_rows_that_failed_are_mended_and_sent_back(
    stage: Stage, sql: Sql, failures: Callable[..., tuple[Client, str]], run_import: Import
) -> None:
    link = {"url": "https://example.com/a", "custom": "taken", "campaign": stage.ids["campaign"],
            "pixels": [stage.ids["pixel"]], "channel": [stage.ids["channel"]],
            "type": f"overlay-{stage.ids['overlay']}"}  # fmt: skip
    stage.alice.add("/api/url/add", link)
    stage.alice.add("/api/url/add", {"url": "https://example.com/b", "custom": "splash", "type": stage.ids["splash"]})
    stage.alice.add("/api/bio/add", {"name": "Me", "alias": "my-page"})
    heir, text = failures(export(stage.alice))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["error"].partition(".")[0] for row in rows} >= {"This alias is already in use"}
    mended = []
    for row in rows:
        line = json.loads(row["line"])
        line |= {name: f"new-{line[name]}" for name in ("alias",) if name in line}
        line |= {name: 7 for name in ("clicks",) if name in line}
        line |= {name: "https://new.example.com" for name in ("domain",) if row["file"] == "domains.jsonl"}
        mended.append([row["file"], json.dumps(line), row["error"]])
    assert {row[0] for row in mended} == {"domains.jsonl", "links.jsonl", "bio.jsonl"}
    found = run_import(heir, table(*mended))
    assert (found["source"], found["state"], found["made"], found["failed"]) == ("account", "done", len(rows), 0)

    def own(kind: str) -> int:
        return int(sql(f"SELECT id FROM {kind} WHERE user_id = %(id)s", id=heir.id)[0]["id"])

    made = details(heir, "new-taken")
    assert (made["longurl"], made["campaign"]) == (link["url"], own("campaigns"))
    assert made["imported_clicks"] == 7
    assert (made["pixels"], made["channel"]) == ([own("pixels")], [own("channels")])
    assert made["type"] == f"overlay-{own('overlays')}"
    assert details(heir, "new-splash")["type"] == str(own("splash_pages"))
    assert [row["alias"] for row in sql("SELECT alias FROM bios WHERE user_id = %(id)s ORDER BY id", id=heir.id)][
        -1:
    ] == ["new-my-page"]
    assert run_import(heir, table(*mended))["made"] == 0, "rows are not repeated"


def test_a_dry_run_shows_the_mended_rows(alice: Client, sql: Sql) -> None:
    rows = [line_of("links", {"url": "https://example.com", "custom": "a", "alias": "a"}), line_of("pixels", {})]
    found = send(alice, table(*rows), "?dry_run=1").get_json()["data"]
    assert (found["source"], found["format"], found["columns"]) == ("account", "csv", ["file", "line", "error"])
    assert [row["link"]["url"] for row in found["rows"]] == ["https://example.com", ""]
    assert sql("SELECT FROM imports") == []


def test_mended_rows_refer_to_rows_of_the_user_only(stage: Stage, bob: Client, run_import: Import) -> None:
    link = {"url": "https://example.com", "alias": "mine", "custom": "mine", "campaign": stage.ids["campaign"],
            "pixels": [stage.ids["pixel"]], "channel": [stage.ids["channel"]],
            "type": f"overlay-{stage.ids['overlay']}"}  # fmt: skip
    code = {"type": "text", "data": "hello", "name": "Poster", "code": "mine", "channel": [stage.ids["channel"]],
            "background": "rgb(255,255,255)", "foreground": "rgb(0,0,0)", "logo": None}  # fmt: skip
    logo = {"id": stage.ids["qr"], "image": "x"}
    found = run_import(bob, table(line_of("links", link), line_of("qr", code), line_of("logos", logo)))
    assert (found["state"], found["made"], found["failed"]) == ("done", 2, 0)
    made = details(bob, "mine")
    assert (made["campaign"], made["pixels"], made["channel"], made["type"]) == (None, [], [], "direct")


def test_rows_that_cannot_be_read_fail_alone(alice: Client, run_import: Import) -> None:
    rows = [
        ["links.jsonl", "", "The reason."],
        ["elsewhere.jsonl", "{}", ""],
        ["visits.jsonl", "{}", ""],
        ["links.jsonl", json.dumps({"url": "https://example.com/" + "x" * 130_000}), ""],
        line_of("links", {"url": "https://example.com", "custom": "right", "alias": "right"}),
        [token_hex(5000), "{}", ""],  # an index has shorter texts
    ]
    found = run_import(alice, table(*rows))
    assert (found["state"], found["made"], found["failed"]) == ("done", 1, 5)
    text = alice.get(f"/api/imports/{found['id']}/errors.csv").text
    errors = list(csv.DictReader(io.StringIO(text)))
    files = ", ".join(f"{name}.jsonl" for name in (*RESOURCES, "links", "qr", "logos", "public", "settings"))
    assert [row["error"] for row in errors][:3] == [
        "The line of row 1 is not a valid JSON object.",
        f"Row 2 must have one of these files: {files}.",
        f"Row 3 must have one of these files: {files}.",
    ]
    assert [[row["file"], row["line"]] for row in errors[:4]] == [row[:2] for row in rows[:4]]


def test_a_line_of_a_zip_that_is_not_json_is_in_the_errors(failures: Callable[..., tuple[Client, str]]) -> None:
    _, text = failures(zipped(manifest__json="{}", links__jsonl='{"url":'))
    assert [row["line"] for row in csv.DictReader(io.StringIO(text))] == ['{"url":']


@pytest.mark.parametrize("query", ["?source=account", "?source=account&dry_run=1"])
def test_other_files_are_no_account(alice: Client, sql: Sql, query: str) -> None:
    answer = send(alice, b"url\r\nhttps://example.com\r\n", query)
    assert (answer.status_code, answer.get_json()["code"]) == (400, "import_unreadable")
    assert answer.get_json()["message"].startswith("This is not an export of an account.")
    assert sql("SELECT FROM imports") == []


CAMPAIGN = {"name": "Summer", "slug": "summer"}


@pytest.mark.parametrize(
    "content",
    [
        table(line_of("campaigns", CAMPAIGN)),
        archive(campaigns=[CAMPAIGN]),
    ],
)
def test_the_console_imports_accounts_without_links(
    alice: Client, app: Flask, run_jobs: Callable[[], None], content: bytes
) -> None:
    file = (io.BytesIO(content), "account")
    browser = signed_in(app)
    answer = browser.post("/console/imports/new", data={"file": file}, content_type="multipart/form-data")
    assert "Import all rows" in browser.get(answer.location).text
    browser.post(answer.location, data={"on_conflict": "skip"})
    run_jobs()
    assert [row["name"] for row in alice.get("/api/campaigns").get_json()["data"]["campaigns"]] == ["Summer"]


def test_answers_to_an_overlay_that_is_deleted_meanwhile_are_left_out(app: Flask, alice: Client, sql: Sql) -> None:
    lines = {
        "overlays__jsonl": '{"id": 1, "type": "newsletter", "name": "n"}',
        "answers__jsonl": '{"overlay": 1, "answer": {"email": "visitor@example.com"}}',
    }
    import_id = send(alice, zipped(manifest__json="{}", links__jsonl="", **lines)).get_json()["id"]
    with app.app_context():
        for _ in range(20):
            if job.run_batch(alice.id, import_id):
                break
            sql("DELETE FROM overlays RETURNING id")
    assert import_of(alice, import_id)["state"] == "done"
