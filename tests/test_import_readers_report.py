"""The CSV of failed rows, and our own exports: they are read as the source was."""

from typing import Any

import orjson
import psycopg2
import pytest

from linkmgr.core.web import csv
from linkmgr.features.imports.rows import ImportRow
from tests.conftest import Client
from tests.support.imported import Import, counts, details, shlink
from tests.support.reading import END, SALE, only, read

BASE = {"longUrl": SALE, "shortCode": "summer"}


def report(row: ImportRow, **mended: str) -> bytes:
    """Return the CSV of a row that failed, as GET /api/imports/:id/errors writes it."""
    raw = row.raw | mended
    return csv.lines([[*raw, "error"], [*raw.values(), "Row 1 has a problem."]])


def content(row: ImportRow) -> tuple[Any, ...]:
    return row.members, row.tags, row.created, row.clicks


def as_json(**members: Any) -> bytes:
    return orjson.dumps([members])


@pytest.mark.parametrize(
    "members",
    [
        BASE | {"meta": {"validSince": None, "validUntil": "2027-01-01T00:00:00+00:00"}, "tags": ["news", "a,b"]}
        | {"visitsSummary": {"total": 17, "bots": 2}, "visitsCount": 17, "domain": None},
        {"destination": SALE, "slashtag": "summer", "domain": {"id": "1", "fullName": "go.example.org"},
         "domainName": "rebrand.ly", "tags": [{"id": "x", "name": "news"}], "title": "=1"},
        {"link": "https://bit.ly/3XyZ123", "long_url": SALE, "id": "bit.ly/3XyZ123", "tags": [], "title": None,
         "custom_bitlinks": ["https://go.example.org/Summer", "https://bit.ly/b"], "references": {"group": "x"}},
        {"link": "https://bit.ly/3XyZ123", "long_url": SALE, "custom_bitlinks": [], "title": "=1"},
        {"url": SALE, "alias": "summer", "uniqueclicks": 1, "clicks": 3, "channels": ["news, mail", "[Q1]"],
         "geotarget": [{"location": "germany", "link": SALE + "?" + "x" * 20_000}], "deeplink": {"ios": SALE},
         "parameters": [], "metatitle": "[1] 50 %"},
    ],
)  # fmt: skip
def test_a_row_of_json_that_failed_can_be_mended_and_sent_again(members: dict[str, Any]) -> None:
    row, *_ = read(as_json(**members))
    assert row.problem is None
    assert content(read(report(row))[0]) == content(row)


def test_members_of_objects_are_columns_of_their_own() -> None:
    row = only(as_json(**BASE, meta={"validUntil": "2027-01-01T00:00:00+00:00", "maxVisits": None}, other={}))
    assert row.raw == BASE | {"meta.validUntil": "2027-01-01T00:00:00+00:00", "meta.maxVisits": "", "other": "{}"}
    assert row.members["expiry"] == END


def test_a_cell_that_is_too_long_for_the_report_is_cut_and_says_so() -> None:
    _, row = read(orjson.dumps([BASE, BASE | {"title": "t" * 70_000, "other": "x"}]))
    assert (row.raw["title"][-8:], len(row.raw["title"]), row.raw["other"]) == ("t… [cut]", 5007, "x")
    assert only(report(row)).problem == "Row 1 has a 'title' that was cut in this report. Copy it from your file."
    assert only(report(row, title="Sale")).members["title"] == "Sale"


def test_the_report_keeps_a_bounded_part_of_a_row() -> None:
    members = {f"member {number} {'x' * 100}": "x" * 200 for number in range(2000)}
    first, long = read(orjson.dumps([BASE, BASE | members]))
    assert first.problem is long.problem is None
    assert sum(len(name) + len(text) for name, text in long.raw.items()) < 70_000
    assert long.raw["longUrl"] == SALE


@pytest.mark.parametrize(
    "members", [{"title": "t" * 70_000}, {"url": SALE + "?" * 65_536, "geotarget": [["t" * 70_000]]}]
)
def test_a_link_with_more_text_than_a_request_can_have_is_a_problem(members: dict[str, Any]) -> None:
    first = {"url": SALE, "alias": "a", "uniqueclicks": 1}
    problems = [row.problem for row in read(orjson.dumps([first, first | members]))]
    assert problems == [None, "Row 2 has more than 65536 characters for a link. Shorten them."]


def test_our_own_json_is_read_without_the_marks_of_a_csv() -> None:
    members = {"url": SALE, "alias": "summer", "uniqueclicks": 1, "metatitle": "'=x", "error": "none"}
    assert only(as_json(**members)).members["metatitle"] == "'=x"
    assert only(as_json(**BASE, title="'=x", error="none")).members["title"] == "'=x"


@pytest.mark.parametrize("name", ["[Q1] Sales", '["a"]', "[1]", "[", "{}"])
def test_names_of_channels_with_brackets_are_kept(name: str) -> None:
    line = csv.lines([["Long URL", "Tags", "alias", "uniqueclicks"], [SALE, f"news|{name}", "summer", 1]])
    assert only(line).tags == ["news", name]
    line = csv.lines([["Long URL", "Tags", "alias", "uniqueclicks"], [SALE, name, "summer", 1]])
    assert only(line).tags == [name]
    other = only(csv.lines([["Long URL", "Short code", "Tags"], [SALE, "summer", name]]))
    assert other.tags == (["a"] if name == '["a"]' else [name])


@pytest.mark.parametrize(
    ("clicks", "imported", "total"), [(0, 100, 100), (17, 100, 117), (17, None, 17), (None, 100, 100)]
)
def test_our_own_exports_keep_imported_clicks(clicks: int | None, imported: int | None, total: int) -> None:
    members = {"url": SALE, "alias": "summer", "uniqueclicks": 0, "clicks": clicks, "imported_clicks": imported}
    assert only(as_json(**members)).clicks == total
    row = only(csv.lines([[*members], [*members.values()]]))
    assert (row.clicks, only(report(row)).clicks) == (total, total)


# --- over HTTP


def test_an_export_keeps_channels_with_brackets_and_imported_clicks(
    alice: Client, bob: Client, run_import: Import
) -> None:
    run_import(alice, shlink("2024-01-31T10:00:00+00:00,summer,,https://example.com/a,[Q1] Sales,'=x,100"))
    for client, accept, alias in ((bob, "text/csv", "summer-2"), (alice, "application/json", "summer-3")):
        exported = alice.get("/api/urls/export", headers={"Accept": accept}).get_data()
        assert counts(run_import(client, exported, "?on_conflict=rename")) == ("done", 1, 1, 0, 0, 0)
        assert details(client, alias)["imported_clicks"] == 100
        [*_, link] = sorted(client.get("/api/urls/export?format=json").get_json()["data"], key=lambda link: link["id"])
        assert (link["channels"], link["imported_clicks"]) == (["[Q1] Sales"], 100)


def test_the_report_has_a_bounded_number_of_columns(alice: Client, run_import: Import) -> None:
    rows = [BASE | {"longUrl": "x", f"a{number}": 1, f"b{number}": 1} for number in range(600)]
    found = run_import(alice, orjson.dumps(rows))
    assert found["failed"] == 600
    header, *lines = alice.get(f"/api/imports/{found['id']}/errors.csv").text.splitlines()
    assert header.startswith("longUrl,shortCode,a0,a1")
    assert (len(header.split(",")), len(lines)) == (1001, 600)


def test_failed_rows_that_cannot_be_read_now_are_an_error_response(
    alice: Client, run_import: Import, raw: psycopg2.extensions.connection
) -> None:
    found = run_import(alice, shlink("", "no date,sale,s.example.com,https://example.com/sale,,Sale,0"))
    with raw.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE import_rows")
        answer = alice.get(f"/api/imports/{found['id']}/errors")
        cursor.execute("ROLLBACK")
    assert (answer.status_code, answer.get_json()["code"]) == (503, "busy")


def test_a_description_may_be_the_mark_of_a_removed_password() -> None:
    row = only(as_json(**BASE, description="[removed]", password="[removed]"))
    assert row.problem == "Row 1 has a 'password' that this report does not repeat. Fill it in, or leave it empty."
    assert only(as_json(**BASE, description="[removed]")).members["description"] == "[removed]"
