"""/api/imports: files that become links in the background."""

import gzip
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from linkmgr.core.web import uploads
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.imported import HEADER, Import, aliases, counts, details, import_of, sale, send, shlink

FILES = Path(__file__).parent / "import_files"

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
    found = import_of(alice, answer.get_json()["id"])
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
    assert first["link"] == {"url": "https://example.com/sale", "custom": "summer", "title": "Sale"}
    assert "'shortCode' must be" in second["problem"]
    assert len(others) == 8
    for table in ("imports", "import_rows", "links", "jobs", "channels"):
        assert sql(f"SELECT FROM {table}") == []


def test_a_dry_run_says_what_the_import_refuses(alice: Client, bob: Client, run_import: Import, sql: Sql) -> None:
    bob.add("/api/url/add", {"url": "https://example.com/", "custom": "taken"})
    alice.add("/api/url/add", {"url": "https://example.com/", "custom": "own", "externalid": "g-0"})
    file = (
        b"url,custom,ref,clickid,metadata\r\n"
        b'https://example.com/1,,g-1,true,"{""a"": 1}"\r\n'
        b"https://example.com/2,,g-1,,\r\nhttps://example.com/3,,g-0,,\r\n"
        b"https://example.com/4,taken,,,\r\nhttps://example.com/5,own,,,\r\nhttps://example.com/6,new,,,\r\n"
    )
    query = '?mapping={"externalid":"ref","clickid":"clickid","metadata":"metadata"}'
    before = sql("SELECT * FROM links ORDER BY id")
    shown = send(alice, file, f"{query}&dry_run=1").get_json()["data"]["rows"]
    assert sql("SELECT * FROM links ORDER BY id") == before
    assert sql("SELECT FROM outbox WHERE type LIKE 'link.%'") == []
    assert [shown[0]["link"][name] for name in ("clickid", "metadata")] == ["true", '{"a":1}']
    refused = {row["number"]: row["problem"] for row in shown if row["problem"]}
    assert [*refused] == [2, 3, 4]
    found = run_import(alice, file, query)
    assert (found["made"], found["skipped"], found["failed"]) == (2, 1, 3)
    errors = alice.get(f"/api/imports/{found['id']}/errors").get_json()["data"]
    assert {row["number"]: row["message"] for row in errors if row["code"] != "import_skipped"} == refused


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
        ('?mapping={"url":"a\\u0000b"}', "mapping must name columns without NUL characters"),
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
    answer = alice.post("/api/imports", data=form, content_type="multipart/form-data")
    assert (answer.status_code, answer.get_json()["code"]) == (413, "file_too_large")
    assert sql("SELECT FROM imports") == []


@pytest.mark.parametrize("fields", [{f"field{n}": "x" for n in range(31)}, {"mapping": "x" * 300_000}])
def test_a_form_with_too_many_or_too_large_fields_is_refused(
    alice: Client, sql: Sql, fields: dict[str, object]
) -> None:
    form = fields | {"file": (BytesIO(shlink(sale("summer"))), "links.csv")}
    answer = alice.post("/api/imports", data=form, content_type="multipart/form-data")
    assert (answer.status_code, answer.get_json()["code"]) == (413, "form_too_large")
    assert "more than 20 parts" in answer.get_json()["message"]
    assert sql("SELECT FROM imports") == []


def test_a_repeated_request_with_a_large_file_imports_it_once(
    alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    file = shlink(*(sale(f"row-{n}") for n in range(800)))
    assert len(file) > 65536
    headers = {"Idempotency-Key": "9b2d"}
    answers = [alice.post("/api/imports", data=file, content_type="text/csv", headers=headers) for _ in range(2)]
    assert answers[0].data == answers[1].data
    assert answers[1].headers["Idempotency-Replayed"] == "true"
    other = alice.post("/api/imports", data=file[:-90], content_type="text/csv", headers=headers)
    assert other.get_json()["code"] == "idempotency_key_reused"
    run_jobs()
    assert len(aliases(sql, alice)) == 800
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
    assert (found["state"], found["read"]) == ("done", len(lines))
    assert found["message"].partition(":")[0] in ("", "These columns are ignored")  # those of the first 64 KiB
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


def test_a_url_without_an_alias_is_imported_once_with_its_first_clicks(
    alice: Client, run_import: Import, sql: Sql
) -> None:
    for clicks, expected in ((7, ("done", 1, 1, 0, 0, 0)), (9, ("done", 1, 0, 0, 1, 0))):
        file = json.dumps({"url": "https://example.com/", "clicks": clicks}).encode()
        assert counts(run_import(alice, file, "?source=linkmgr")) == expected
    assert sql("SELECT imported_clicks, url_only FROM links") == [{"imported_clicks": 7, "url_only": True}]


def test_skip_keeps_own_links_and_fails_for_those_of_others(
    alice: Client, bob: Client, run_import: Import, sql: Sql
) -> None:
    alice.add("/api/url/add", {"url": "https://example.com/mine", "custom": "mine"})
    bob.add("/api/url/add", {"url": "https://example.com/theirs", "custom": "theirs"})
    file = shlink(sale("mine"), sale("theirs"), sale("free"), sale("free")).replace(b"s.example.com", b"127.0.0.1:5000")
    found = run_import(alice, file)
    assert counts(found) == ("done", 4, 1, 0, 2, 1)
    assert details(alice, "mine")["longurl"] == "https://example.com/mine"
    again = run_import(alice, file)
    assert counts(again) == ("done", 4, 0, 0, 3, 1)


def test_rename_adds_the_smallest_free_number(alice: Client, bob: Client, run_import: Import, sql: Sql) -> None:
    bob.add("/api/url/add", {"url": "https://example.com/theirs", "custom": "sale"})
    alice.add("/api/url/add", {"url": "https://example.com/mine", "custom": "sale-2"})
    file = shlink(sale("sale"), sale("sale"), sale("sale-2"), sale("x" * 100), sale("x" * 100))
    found = run_import(alice, file.replace(b"s.example.com", b"127.0.0.1:5000"), "?on_conflict=rename")
    assert counts(found) == ("done", 5, 5, 0, 0, 0)
    made = {"sale-2", "sale-3", "sale-4", "sale-2-2", "x" * 100, "x" * 96 + "-2"}
    assert set(aliases(sql, alice)) == made


def test_update_writes_the_members_of_the_row(alice: Client, bob: Client, run_import: Import, sql: Sql) -> None:
    old = {"url": "https://example.com/old", "custom": "mine", "description": "kept"}
    link_id = alice.add("/api/url/add", old)
    bob.add("/api/url/add", {"url": "https://example.com/theirs", "custom": "theirs"})
    file = shlink(sale("mine", clicks=7), sale("theirs"), sale("new")).replace(b"s.example.com", b"127.0.0.1:5000")
    found = run_import(alice, file, "?on_conflict=update")
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
    rows = [sale("good"), sale("b b"), sale("ftp", "ftp://example.com"), sale("formula").replace("Sale", "=1+1")]
    found = run_import(alice, shlink(*rows))
    assert counts(found) == ("done", 4, 2, 0, 0, 2)
    path = f"/api/imports/{found['id']}/errors"
    as_json = alice.get(path, headers={"Accept": "*/*"}).get_json()["data"]  # as generated TypeScript sends it
    assert [(row["number"], row["code"], row["raw"]["shortCode"]) for row in as_json] == [
        (2, "invalid", "b b"),
        (3, "invalid", "ftp"),
    ]
    assert alice.get(path, headers={"Accept": "text/csv"}).text == alice.get(f"{path}.csv").text
    answer = alice.get(f"{path}.csv")
    assert answer.mimetype == "text/csv"
    header, *lines = answer.text.splitlines()
    assert header == f"{HEADER},error"
    assert "'longUrl' must be a URL that begins with http:// or https://" in lines[1]
    mended = answer.text.replace(",b b,", ",better,").replace("ftp://", "https://")
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
    assert {row["code"] for row in sql("SELECT code FROM import_rows WHERE code IS NOT NULL")} == {"plan_limit"}


@pytest.mark.parametrize("alias", ["short", "slug", "code", "path", "keyword", "alias", "back-half", "Short URL"])
def test_a_table_with_a_column_of_aliases_is_recognized(alice: Client, alias: str) -> None:
    shown = send(alice, f"{alias},url\nsale,https://example.com\n".encode(), "?dry_run=1").get_json()["data"]
    assert (shown["mapping"], shown["notes"]) == ({"custom": alias, "url": "url"}, [])
    assert shown["rows"][0]["link"] == {"custom": "sale", "url": "https://example.com"}


def test_the_preview_says_what_an_import_leaves_out(alice: Client) -> None:
    file = b"Where to,url,uuid\nx,https://example.com,1\n"
    notes = send(alice, file, "?dry_run=1").get_json()["data"]["notes"]
    assert notes == [
        "No column of aliases was found: each link gets a new one. Name it as custom in the mapping.",
        "These columns are ignored: Where to, uuid.",
    ]
    table = (FILES / "null_words_kutt_table.csv").read_bytes()
    [ignored] = send(alice, table, "?dry_run=1").get_json()["data"]["notes"]
    assert ignored == "These columns are ignored: id, banned_by_id, domain_id, updated_at, user_id, uuid."


def test_a_mapping_adds_to_what_is_guessed(alice: Client, run_import: Import) -> None:
    file = b"slug,url,title,Labels of it\nsale,https://example.com,Sale,news\n"
    mapping = json.dumps({"tags": "Labels of it", "title": ""})
    shown = send(alice, file, f"?dry_run=1&mapping={mapping}").get_json()["data"]
    assert shown["mapping"] == {"url": "url", "custom": "slug", "tags": "Labels of it"}
    assert run_import(alice, file, f"?mapping={mapping}")["made"] == 1
    assert (details(alice, "sale")["title"], len(details(alice, "sale")["channel"])) == ("", 1)
