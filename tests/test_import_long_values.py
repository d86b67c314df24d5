"""Imported rows with values of any length."""

import json
from collections.abc import Callable
from io import BytesIO

from flask import Flask

from tests.conftest import Client
from tests.support.archives import zipped
from tests.support.factories import Sql
from tests.support.imported import HEADER, Import, counts
from tests.support.pages import signed_in


def test_the_logo_of_a_qr_code_is_limited_as_in_the_api(alice: Client, run_import: Import, sql: Sql) -> None:
    lines = [
        {"id": n, "type": "text", "data": "hello", "name": "Poster", "code": f"code{n}", "channel": [],
         "background": "rgb(255,255,255)", "foreground": "rgb(0,0,0)", "logo": "x" * length}
        for n, length in enumerate((2048, 2049))
    ]  # fmt: skip
    file = zipped(manifest__json="{}", links__jsonl="", qr__jsonl="\n".join(map(json.dumps, lines)))
    assert counts(run_import(alice, file)) == ("done", 2, 1, 0, 0, 1)
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
