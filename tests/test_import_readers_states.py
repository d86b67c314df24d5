"""Words for no value, and links that were not open to all at their source."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Client
from tests.support.imported import Import, send
from tests.support.reading import SALE, only, read

FILES = Path(__file__).parent / "import_files"
WORDS = ["NULL", "null", "None", r"\N", "(null)", "nil", " NULL ", ""]
MEMBERS = ("password", "title", "description", "domain", "tags", "expiry", "created", "clicks", "deleted_at")


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("columns", ["target address", "longUrl shortCode", "to alias", "url key link"])
def test_a_word_for_null_is_no_value_in_any_source_and_format(word: str, columns: str) -> None:
    link = {name: SALE if n == 0 else "summer" for n, name in enumerate(columns.split())}
    values = link | dict.fromkeys(MEMBERS, word)
    mapping = {"url": next(iter(link)), "custom": [*link][1]}
    expected = only(json.dumps([link]).encode(), mapping=mapping)
    for file in (
        json.dumps([values]).encode(),
        json.dumps(values).encode(),
        "\n".join([",".join(values), ",".join(values.values())]).encode(),
        "\n".join(["\t".join(values), "\t".join(values.values())]).encode(),
    ):
        row = only(file, mapping=mapping)
        assert (row.members, row.tags, row.created, row.clicks, row.problem) == (expected.members, [], None, None, None)
    assert "domain" not in expected.members


def test_a_table_that_was_exported_with_words_for_null_locks_no_link() -> None:
    rows = read((FILES / "null_words_kutt_table.csv").read_bytes())
    assert [(row.members, row.clicks) for row in rows] == [
        ({"url": f"https://example.com/{alias}", "custom": alias}, 3) for alias in ("kutta", "kuttb", "kuttc")
    ]


def test_an_alias_of_a_service_and_texts_of_our_own_exports_may_be_such_a_word() -> None:
    assert only(b"target,address\nhttps://example.com,nil\n").members["custom"] == "nil"
    sql = b"INSERT INTO yourls_url VALUES ('null','https://example.com','NULL','2026-01-01','',1);"
    assert only(sql).members == {"url": "https://example.com", "custom": "null"}
    own = only(b"alias,custom,longurl,metatitle,uniqueclicks,channels\nnone,none,https://example.com,None,0,nil\n")
    assert (own.members["custom"], own.members["metatitle"], own.tags) == ("none", "None", ["nil"])
    assert only(b"longurl,alias\nhttps://example.com,NULL\n", mapping={"url": "longurl"}).members == {
        "url": "https://example.com"
    }


OVER = "https://example.com/over"
RULES = "has rules that choose its target at the source. Read the links from the API of Shlink, which has the rules. "
LEAVE = "at the source. Leave the row out, or empty its column"
SECRET = "has a password, which the source keeps secret. Fill in 'password', or leave the row out."


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"is_deleted": True}, f"is deleted {LEAVE} 'is_deleted'."),
        ({"deleted_at": "2026-01-01 10:00:00"}, f"is deleted {LEAVE} 'deleted_at'."),
        ({"Status": "Deleted"}, f"is deleted {LEAVE} 'Status'."),
        ({"Status": "expired"}, f"has expired {LEAVE} 'Status'."),
        ({"is_disabled": "1"}, f"is disabled {LEAVE} 'is_disabled'."),
        ({"disabledAt": "2026-01-01"}, f"is disabled {LEAVE} 'disabledAt'."),
        ({"banned": "Y"}, f"is banned {LEAVE} 'banned'."),
        ({"active": "0"}, f"is not active {LEAVE} 'active'."),
        ({"isActive": False}, f"is not active {LEAVE} 'isActive'."),
        ({"hasRedirectRules": True}, f"{RULES}Leave the row out, or empty its column 'hasRedirectRules'."),
        ({"testVariants": [{"url": SALE}]}, f"has rules that choose its target {LEAVE} 'testVariants'."),
        ({"secret_key": "a1b2"}, SECRET),
        ({"hasPassword": "true"}, SECRET),
        ({"password_protected": 1}, SECRET),
        ({"Status": "Active", "deleted": "f", "active": "1", "banned": 0, "rules": [], "archived": True}, None),
        ({"is_disabled": "NULL", "deleted_at": "0000-00-00 00:00:00", "maxVisits": 0, "secret_key": ""}, None),
        ({"expired": True, "expires": "2020-01-01 10:00:00"}, None),
        ({"has_password": True, "password": "correct horse"}, None),
    ],
)
@pytest.mark.parametrize(
    "link",
    [
        {"target": SALE, "address": "a"},
        {"longUrl": SALE, "shortCode": "a"},
        {"long_url": SALE, "link": "https://bit.ly/a"},
    ],
)
def test_a_link_that_is_not_open_at_its_source_does_not_become_one(
    members: dict[str, Any], problem: str | None, link: dict[str, str]
) -> None:
    row = only(json.dumps([link | members]).encode())
    assert row.problem == (problem and f"Row 1 {problem}")
    assert row.code == ("import_inactive" if problem else "invalid")
    assert bool(row.members) == (problem is None)


@pytest.mark.parametrize(
    ("file", "states"),
    [
        ("shlink_limits.json", ["has rules that choose its target", None]),
        ("bitly_backhalves_and_deleted.json", [None, None, None, "is deleted"]),
    ],
)
def test_files_with_links_that_have_ended_or_not_begun(file: str, states: list[str | None]) -> None:
    rows = read((FILES / file).read_bytes())
    told = [row.problem and row.problem.partition(" at the source")[0].split(maxsplit=2)[2] for row in rows]
    assert told == states


def test_targets_for_devices_and_countries_of_dub_are_kept() -> None:
    row = only((FILES / "dub_card_off.json").read_bytes())
    assert row.members["devicetarget"] == [
        {"device": device, "link": "https://apps.apple.com/x"} for device in ("iphone", "ipad")
    ]
    assert row.members["geotarget"] == [{"location": "DE", "link": "https://example.de/"}]


def test_the_preview_and_the_report_say_why_a_link_does_not_come_alive(alice: Client, run_import: Import) -> None:
    file = (FILES / "shlink_limits.json").read_bytes()
    first, second = send(alice, file, "?dry_run=1").get_json()["data"]["rows"]
    assert f"{RULES}Leave the row out, or empty its column 'hasRedirectRules'." in first["problem"]
    assert not second["problem"]
    found = run_import(alice, file)
    path = f"/api/imports/{found['id']}/errors"
    rows = alice.get(path, headers={"Accept": "application/json"}).get_json()["data"]
    assert [(row["code"], row["message"]) for row in rows] == [("import_inactive", first["problem"])]
    assert run_import(alice, alice.get(f"{path}.csv").text.replace(",true,", ",,", 1).encode())["made"] == 1
    newest, oldest = (
        alice.get(f"/api/url/{link['id']}").get_json()["details"]
        for link in alice.get("/api/urls").get_json()["data"]["urls"]
    )
    assert (newest["maxclicks"], newest["forwardquery"], newest["imported_clicks"]) == (10, True, 10)
    assert oldest["starts"] == "2099-01-01 00:00:00"


@pytest.mark.parametrize(
    ("link", "members"),
    [
        (
            {"originalURL": SALE, "path": "a", "clicksLimit": 9, "expiredURL": OVER, "ttl": "2030-01-01T00:00:00.000Z"},
            {"maxclicks": 9, "expiredurl": OVER, "expiry": "2030-01-01 00:00:00"},
        ),
        (
            {"url": SALE, "key": "a", "shortLink": "https://d.sh/a", "expiresAt": "2030-01-01", "expiredUrl": OVER},
            {"expiry": "2030-01-01 23:59:59", "expiredurl": OVER},
        ),
        (
            {"longUrl": SALE, "shortCode": "a", "meta.validSince": "2030-01-01", "maxVisits": 0, "forwardQuery": 0},
            {"starts": "2030-01-01 00:00:00", "maxclicks": 0, "forwardquery": False},
        ),
        (
            {"destination": SALE, "slashtag": "a", "forwardParameters": "TRUE", "maxclicks": "1,000"},
            {"forwardquery": True, "maxclicks": 1000},
        ),
    ],
)  # fmt: skip
def test_starts_limits_and_targets_after_the_end_are_kept(link: dict[str, Any], members: dict[str, Any]) -> None:
    row = only(json.dumps([link]).encode())
    assert row.problem is None
    assert {name: row.members.get(name) for name in members} == members
