"""Columns that are not understood: one that may close links fails the row, and every other one is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from linkmgr.features.imports.conditions import kind_of
from tests.conftest import Client
from tests.support.imported import Import, counts, details, send
from tests.support.pages import signed_in
from tests.support.reading import SALE, only, read

CASE = (
    b"url,slug,pwd,not_after,available_from,visibility\n"
    b"https://example.com/closed-1,closed-pwd,walnut-17,,,\n"
    b"https://example.com/closed-2,closed-end,,2020-01-01 00:00:00,,\n"
    b"https://example.com/closed-3,closed-start,,,2099-01-01,\n"
    b"https://example.com/closed-4,closed-private,,,,private\n"
)
COLUMNS = ["pwd", "not_after", "available_from", "visibility"]
FILES = Path(__file__).parent / "import_files"
SECRETS = (
    "pwd passwd pass secret passcode pin protected password_hash PasswordHash link_password accessSecret passphrase"
)
ENDS = "expired_at expireAt valid_to end_date not_after ends validTill expiration_timestamp deadline closes_at EndTime"
BEGINS = "not_before available_from activate_at start_time goLiveAt scheduled_for_release_at opens_on"
CLOSED = {
    "status": "archived", "private": "1", "is_public": "false", "visibility": "private", "published": "0",
    "one_time": "1", "isArchived": "true", "state": "draft", "access_level": "members", "hidden": "yes",
    "Single use": "x", "link_status": "retired", "is_live": "no", "max_hits": "5", "clicksLeft": "1", "locked": "t",
}  # fmt: skip
OPEN = {
    "status": "active", "private": "0", "is_public": "true", "visibility": "public", "published": "2020-01-01",
    "one_time": "", "archived": "false", "state": "ok", "http_status": "302", "pin": "0", "pwd": "NULL",
    "ends": "never",
    "start_time": "2020-01-01 00:00:00", "max_hits": "unlimited", "clicks_left": "0", "is_live": "yes",
    "updated_at": "2020-01-01", "created_by": "ada", "password_changed_by": "", "weekend": "yes", "gender": "x",
    "passenger": "Ada", "pinned": "1", "public_stats": "false", "start_count": "7", "user_id": "5", "compass": "N",
}  # fmt: skip


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *((name, "walnut-17") for name in SECRETS.split()),
        *((name, time) for name in ENDS.split() for time in ("2020-01-01 00:00:00", "2099-01-01", "soon")),
        *((name, "2099-01-01") for name in BEGINS.split()),
        *CLOSED.items(),
    ],
)
@pytest.mark.parametrize("link", [{"url": SALE, "slug": "a"}, {"target": SALE, "address": "a"}])
def test_a_column_that_may_close_a_link_fails_its_row_and_is_named(
    link: dict[str, str], column: str, value: str
) -> None:
    if column == "isArchived":  # services whose columns are known redirect archived links
        link = {"url": SALE, "slug": "a"}
    mapping = {"url": "url", "custom": "slug"} if "slug" in link else {}
    row = only(json.dumps([link | {column: value}]).encode(), mapping=mapping)
    assert row.problem
    assert (f"'{column}'" in row.problem, row.code, row.members) == (True, "import_inactive", {})
    ignored: Any = mapping | {column: None}
    assert only(json.dumps([link | {column: value}]).encode(), mapping=ignored).problem is None


@pytest.mark.parametrize(("column", "value"), OPEN.items())
def test_a_value_that_means_open_and_other_columns_fail_no_row(column: str, value: str) -> None:
    row = only(json.dumps([{"to": SALE, "a": "x", column: value}]).encode(), mapping={"url": "to", "custom": "a"})
    assert row.problem is None


def test_no_column_of_our_own_exports_is_a_condition(alice: Client, run_import: Import) -> None:
    alice.add("/api/url/add", {"url": SALE, "custom": "own", "status": "private", "starts": "2099-01-01"})
    file = alice.get("/api/urls/export?format=csv").data
    assert (
        alice.delete("/api/url/{}/delete".format(alice.get("/api/urls?short=own").get_json()["id"])).status_code == 200
    )
    assert counts(run_import(alice, file))[2:] == (1, 0, 0, 0)
    assert details(alice, "own")["status"] == "private"


def test_what_was_closed_stays_closed_until_the_user_ignores_the_columns(alice: Client, run_import: Import) -> None:
    preview = send(alice, CASE, "?dry_run=1").get_json()["data"]
    assert (preview["closing"], preview["ignored"]) == (COLUMNS, [])
    assert [f"'{name}'" in row["problem"] for name, row in zip(COLUMNS, preview["rows"], strict=True)] == [True] * 4
    assert any(all(name in note for name in COLUMNS) for note in preview["notes"])
    assert "walnut" not in json.dumps(preview)
    assert counts(run_import(alice, CASE)) == ("done", 4, 0, 0, 0, 4)
    mapping = json.dumps({"visibility": None, "pwd": None})
    query = f"?mapping={mapping}"
    assert send(alice, CASE, f"{query}&dry_run=1").get_json()["data"]["ignored"] == ["visibility", "pwd"]
    found = run_import(alice, CASE, query)
    assert counts(found) == ("done", 4, 2, 0, 0, 2)
    assert "pwd" in found["message"]
    assert "visibility" in found["message"]
    unknown = send(alice, CASE, '?mapping={"visible": null}').get_json()
    assert unknown["message"] == "mapping names columns that the file does not have: visible."


def test_the_console_asks_before_an_import_begins(app: Any, alice: Client) -> None:
    browser = signed_in(app)
    page = browser.post(
        "/console/imports/new",
        data={"file": ((FILES / "other_closed.csv").open("rb"), "closed.csv")},
        content_type="multipart/form-data",
    )
    path = page.headers["Location"]
    text = browser.get(path).text
    assert all(f'name="ignored" value="{name}"' in text for name in COLUMNS)
    chosen = browser.get(f"{path}?url=url&custom=slug&ignored=pwd").text
    assert 'name="ignored" value="pwd" checked' in chosen
    assert '<input type="hidden" name="ignored" value="pwd">' in chosen
    begun = browser.post(path, data={"url": "url", "custom": "slug", "ignored": "pwd", "on_conflict": "skip"})
    assert begun.status_code == 303
    assert alice.get("/api/imports").get_json()["data"]["imports"][0]["state"] == "queued"


@pytest.mark.parametrize("column", ["pa", "rules_note", "cus", "titl", "ur", "tag", "meta", "deviceLongUrls"])
@pytest.mark.parametrize("is_json", [True, False])
def test_each_column_that_is_not_used_is_named_before_and_after(
    alice: Client, run_import: Import, column: str, *, is_json: bool
) -> None:
    values = {"target": SALE, "address": "a", "password": "", column: "x"}
    lines = [",".join(values), ",".join(values.values())]
    file = json.dumps([values]).encode() if is_json else "\n".join(lines).encode()
    note = f"These columns are ignored: {column}."
    assert note in send(alice, file, "?dry_run=1").get_json()["data"]["notes"]
    assert run_import(alice, file)["message"] == note


def test_members_of_objects_are_columns_of_their_own(alice: Client, run_import: Import) -> None:
    meta = {"validUntil": None, "audience": "all"}
    file = json.dumps({"shortUrls": {"data": [{"longUrl": SALE, "shortCode": "a", "meta": meta}]}}).encode()
    assert run_import(alice, file)["message"] == "These columns are ignored: meta.audience."


EXPIRY = """\
CREATE TABLE `yourls_expiry` (
  `keyword` varchar(200) NOT NULL,
  `type` varchar(5) NOT NULL,
  `shelflife` int(20)
);
INSERT INTO `yourls_expiry` VALUES ('ended','clock',60),('click','click',5);
"""
OPTIONS = r"""
CREATE TABLE `yourls_options` (
  `option_id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,
  `option_name` varchar(64) NOT NULL DEFAULT '',
  `option_value` longtext NOT NULL,
  PRIMARY KEY (`option_id`,`option_name`)
);
INSERT INTO `yourls_options` VALUES (1,'version','1.9'),
(2,'active_plugins','a:1:{i:0;s:4:"open";}'),(3,'matthew_pwprotection','{\"locked\":\"walnut\"}');
"""
LINKS = "INSERT INTO `yourls_url` VALUES " + ",".join(
    f"('{alias}','{SALE}','','2024-01-31 10:00:00','',1)" for alias in ("open", "ended", "click", "locked")
)


def test_links_that_plugins_of_yourls_have_closed_fail(alice: Client, run_import: Import) -> None:
    rows = read(f"{EXPIRY}{OPTIONS}{LINKS};\n".encode())
    names = [row.problem and row.problem.split("'")[1] for row in rows]
    assert names == [None, "yourls_expiry", "yourls_expiry", "matthew_pwprotection"]
    assert {row.code for row in rows[1:]} == {"import_inactive"}
    ignored = read(f"{EXPIRY}{OPTIONS}{LINKS};\n".encode(), mapping={"yourls_expiry": None})
    assert [row.problem is None for row in ignored] == [True, True, True, False]
    found = run_import(alice, f"{LINKS};\n{EXPIRY}".encode())
    assert (found["state"], "'yourls_expiry' says that links before it" in found["message"]) == ("failed", True)


@pytest.mark.parametrize(
    "dump",
    [
        b"PGDMP\x01\x0e\x00",
        b"--\n-- PostgreSQL database dump\n--\n\nSET statement_timeout = 0;\n",
        b"--\n-- PostgreSQL database dump\n--\n\nINSERT INTO public.links VALUES (1, 'a', 'https://example.com');\n",
        b"COPY public.links (id, address, target) FROM stdin;\n1\ta\thttps://example.com\n\\.\n",
    ],
)
def test_a_dump_of_kutt_is_refused_with_what_to_export_instead(alice: Client, dump: bytes) -> None:
    for query in ("", "?dry_run=1"):
        answer = send(alice, dump, query)
        assert (answer.status_code, answer.get_json()["code"]) == (400, "import_unreadable")
        assert "TO 'links.csv' CSV HEADER" in answer.get_json()["message"]


def test_the_table_that_the_refusal_of_such_a_dump_names_is_read() -> None:
    table = (
        b"id,address,description,banned,banned_by_id,created_at,domain_id,expire_in,password,target,updated_at,user_id,"
        b"visit_count,uuid,domain\n"
        b"1,summer,Sale,f,,2024-02-04 12:04:57.1+00,2,2030-01-01 00:00:00+00,,https://example.com/sale,"
        b"2024-02-04 12:04:57+00,1,3,0a1b,s.example.org\n"
        b"2,locked,,f,,2024-02-04 12:04:57.1+00,,,$2a$12$abcdefghijklmnopqrstuv,https://example.com/x,,1,3,0a1c,\n"
    )
    summer, locked = read(table)
    assert summer.members == {
        "url": SALE, "custom": "summer", "description": "Sale", "domain": "s.example.org",
        "expiry": "2030-01-01 00:00:00",
    }  # fmt: skip
    assert (summer.clicks, summer.created, locked.code) == (3, "2024-02-04 12:04:57", "import_inactive")


def test_names_are_read_by_their_words() -> None:
    assert [kind_of(name) for name in ("Valid To", "validto", "VALID-TO", "gültig bis")] == ["end", "end", "end", ""]
