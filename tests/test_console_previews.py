"""Previews of splash pages and overlays in the console, and the answers to overlays."""

import csv
from io import StringIO

from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, seen, words

OVERLAY = {"type": "message", "name": "Hi", "message": "Hello <b>\nyou", "color": "#ffffff", "background": "#14532d"}


def test_a_preview_shows_the_stored_page_without_scripts_and_without_a_visit(
    console: FlaskClient, alice: Client, sql: Sql
) -> None:
    splash = alice.add("/api/splash/add", {"name": "A", "title": "Big <b> sale", "counter": 7})
    overlay = alice.add("/api/overlay/add", OVERLAY)
    for path, text in (("splash", "Big &lt;b&gt; sale"), ("overlays", "Hello &lt;b&gt;")):
        row_id = splash if path == "splash" else overlay
        assert f"/console/{path}/{row_id}/preview" in get(console, f"/console/{path}/{row_id}/edit")
        answer = console.get(f"/console/{path}/{row_id}/preview")
        assert answer.status_code == 200
        assert text in answer.text
        assert 'class="preview-mark">Preview' in answer.text
        assert "<script" not in answer.text
        assert "http-equiv" not in answer.text
        policy = answer.headers["Content-Security-Policy"]
        assert "sandbox allow-same-origin" in policy
        assert "frame-ancestors 'self'" in policy
        assert "frame-src 'none'" in policy
    assert "contrast of the text 9.1 to 1" in answer.text
    assert sql("SELECT 1 FROM visits") == []


def test_a_preview_shows_what_was_typed_and_stores_nothing(console: FlaskClient, sql: Sql) -> None:
    page = console.post(
        "/console/splash/preview", data={"title": "Typed", "link": "javascript:alert(1)", "counter": "x"}
    )
    assert "Typed" in page.text
    assert "javascript:" not in page.text
    page = console.post("/console/overlays/preview", data=OVERLAY | {"type": "poll", "message": "Tea?\nGreen"})
    assert "Green" in page.text
    page = console.post("/console/overlays/preview", data=OVERLAY | {"color": "red;}", "type": "image", "message": "x"})
    assert "red;}" not in page.text
    assert sql("SELECT 1 FROM splash_pages") == sql("SELECT 1 FROM overlays") == []


def test_only_pages_with_a_preview_may_show_frames(console: FlaskClient) -> None:
    for path, expected in (("splash/new", True), ("overlays/new", True), ("pixels/new", False), ("links/new", False)):
        policy = console.get(f"/console/{path}").headers["Content-Security-Policy"]
        assert ("frame-src 'self'" in policy) is expected


def test_answers_are_a_table_and_a_file(console: FlaskClient, alice: Client, sql: Sql) -> None:
    overlay = factories.overlay(sql, alice.id)
    assert "Answers of visitors appear here." in get(console, f"/console/overlays/{overlay}/answers")
    for text in ('{"choice": "Yes"}', '{"email": "=1+1@example.com", "message": "Two\\nlines <b>"}'):
        sql(
            "UPDATE overlay_answers SET answer = %(text)s WHERE id = %(id)s RETURNING id",
            text=text,
            id=factories.answer(sql, alice.id),
        )
    page = get(console, f"/console/overlays/{overlay}/answers")
    assert seen(page.split("<thead>")[1].split("</thead>")[0]) == "Time Choice E-mail Message"
    assert "lines &lt;b&gt;" in page
    assert "2 answers" in words(get(console, "/console/overlays"))
    answer = console.get(f"/console/overlays/{overlay}/answers.csv")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="answers-{overlay}.csv"'
    rows = list(csv.reader(StringIO(answer.text)))
    assert rows[0] == ["time (UTC)", "choice", "email", "message"]
    assert [row[1:] for row in rows[1:]] == [["", "'=1+1@example.com", "Two\nlines <b>"], ["Yes", "", ""]]
    assert console.get(f"/console/overlays/{overlay}/answers?page=0").status_code == 400
    assert "has fewer pages" in get(console, f"/console/overlays/{overlay}/answers?page=9")
