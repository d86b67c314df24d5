"""Tests, splits, frames and the like of other services, which become members of links."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conftest import Client
from tests.support.imported import Import, counts, details, send
from tests.support.reading import SALE, only

OTHER = "https://example.com/other"
DUB = {"id": "link_1", "domain": "dub.sh", "key": "a", "url": SALE, "shortLink": "https://dub.sh/a"}
TEST = [{"url": SALE, "percentage": 30}, {"url": OTHER, "percentage": 70.0}]


def at(days: int) -> str:
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:%S.000Z}"


def dub(**members: Any) -> bytes:
    return json.dumps([DUB | members]).encode()


@pytest.mark.parametrize("ends", [None, 7])
@pytest.mark.parametrize("starts", [None, -7])
def test_a_running_test_of_dub_becomes_variants(
    alice: Client, run_import: Import, starts: int | None, ends: int | None
) -> None:
    times = {"testStartedAt": starts and at(starts), "testCompletedAt": ends and at(ends)}
    assert counts(run_import(alice, dub(testVariants=TEST, **times))) == ("done", 1, 1, 0, 0, 0)
    assert details(alice, "a")["variants"] == [
        {"name": "Variant 1", "url": SALE, "weight": 30},
        {"name": "Variant 2", "url": OTHER, "weight": 70},
    ]


def test_a_test_of_dub_that_has_ended_is_no_reason_to_fail() -> None:
    row = only(dub(testVariants=TEST, testStartedAt=at(-30), testCompletedAt=at(-7)))
    assert (row.problem, row.members["url"], "variants" in row.members) == (None, SALE, False)
    assert only(dub(testVariants=None, testStartedAt=None, testCompletedAt=None)).problem is None


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"testVariants": TEST, "testStartedAt": "2099-01-01T00:00:00Z"},
         "has a test that begins on 2099-01-01 00:00:00, and would begin now. Leave the row out, or empty its column"),
        ({"testVariants": [{"url": SALE, "percentage": 33.3}]}, "has a 'testVariants' whose percentages are not int"),
        ({"testVariants": [{"url": SALE}]}, "has a 'testVariants' whose percentages are not integers from 1 to 100."),
        ({"testVariants": "soon"}, "has a 'testVariants' that is no JSON array of objects."),
        ({"testVariants": TEST, "testCompletedAt": "soon"}, "has a time of a test in an unknown format: 'soon'."),
    ],
)  # fmt: skip
def test_a_test_that_variants_cannot_be_fails_its_link(members: dict[str, Any], problem: str) -> None:
    assert (only(dub(**members)).problem or "").startswith(f"Row 1 {problem}")


def test_a_column_that_the_user_ignores_becomes_nothing() -> None:
    row = only(dub(testVariants=TEST), mapping={"testVariants": None})
    assert (row.problem, "variants" in row.members) == (None, False)


# --- Short.io

SHORTIO = {"originalURL": SALE, "path": "a", "shortURL": "https://s.example.org/a"}
PLAY = "https://play.google.com/store/apps/details?id=org.example"
STORE = "https://apps.apple.com/app/id1"


def shortio(**members: Any) -> bytes:
    return json.dumps([SHORTIO | members]).encode()


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"splitURL": OTHER, "splitPercent": 30}, {"variants": [
            {"name": "Original", "url": SALE, "weight": 70}, {"name": "Split", "url": OTHER, "weight": 30},
        ]}),
        ({"splitURL": OTHER, "splitPercent": None}, {"variants": [
            {"name": "Original", "url": SALE, "weight": 50}, {"name": "Split", "url": OTHER, "weight": 50},
        ]}),
        ({"splitURL": None, "splitPercent": 50}, {"variants": []}),
        ({"cloaking": True}, {"type": "frame"}),
        ({"rewrite": True}, {"type": "frame"}),
        ({"cloaking": False}, {"type": "direct"}),
        ({"skipQS": False}, {"forwardquery": True}),
        ({"skipQS": True}, {"forwardquery": False}),
        ({"utmSource": "mail", "utmMedium": "", "utmTerm": "a b"}, {"parameters": [
            {"name": "utm_source", "value": "mail"}, {"name": "utm_term", "value": "a b"},
        ]}),
        ({"originalURL": f"{SALE}?utm_source=mail", "utmSource": "mail"}, {"parameters": []}),
        ({"iphoneURL": "itms-apps://apps.apple.com/app/id1", "androidURL": "market://details?id=org.example"},
         {"deeplink": {"auto": True, "apple": STORE, "google": PLAY}}),
        ({"iphoneURL": STORE, "androidURL": PLAY},
         {"devicetarget": [{"device": "ipad", "link": STORE}, {"device": "iphone", "link": STORE},
                           {"device": "android", "link": PLAY}]}),
    ],
)  # fmt: skip
def test_members_of_short_io_become_ours(
    alice: Client, run_import: Import, members: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert counts(run_import(alice, shortio(**members))) == ("done", 1, 1, 0, 0, 0)
    link = details(alice, "a")
    assert {name: link[name] for name in expected} == expected


@pytest.mark.parametrize("rewrite", [True, False])
def test_frames_and_parameters_of_dub_become_ours(alice: Client, run_import: Import, *, rewrite: bool) -> None:
    target = f"{SALE}?utm_source=mail"
    run_import(alice, dub(rewrite=rewrite, url=target, utm_source="mail", utm_medium=None))
    link = details(alice, "a")
    assert (link["type"], link["parameters"]) == ("frame" if rewrite else "direct", [])
    assert link["longurl"] == target


@pytest.mark.parametrize("member", ["splitURL", "iphoneURL", "androidURL"])
def test_other_targets_of_short_io_must_be_urls(alice: Client, run_import: Import, member: str) -> None:
    found = run_import(alice, shortio(**{member: "https://"}))
    assert counts(found) == ("done", 1, 0, 0, 0, 1)


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        *(({"splitURL": OTHER, "splitPercent": percent},
           "has a 'splitPercent' that is not an integer from 1 to 99. Correct it.") for percent in (0, 100, "x", 3.5)),
        *(({name: url}, f"has a '{name}' that opens an app and is no page of a store. Fill in an https:// URL, or "
           "leave it empty.") for name, url in (
               ("androidURL", "intent://x#Intent;end"), ("iphoneURL", "example:open"), ("iphoneURL", "market://details?id=x"),
        )),
    ],
)  # fmt: skip
def test_values_of_short_io_that_ours_cannot_be_fail_their_link(members: dict[str, Any], problem: str) -> None:
    assert only(shortio(**members)).problem == f"Row 1 {problem}"


@pytest.mark.parametrize(
    ("members", "channels"),
    [
        ({"tags": ["news"], "folder": {"id": "f1", "name": "Spring, 2026"}}, ["news", "Spring, 2026"]),
        ({"tags": ["news"], "Folder": "news"}, ["news"]),
        ({"FolderId": "f1"}, ["Folder f1"]),
        ({"FolderId": None}, []),
    ],
)
@pytest.mark.parametrize("link", [SHORTIO, DUB])
def test_folders_become_channels(link: dict[str, Any], members: dict[str, Any], channels: list[str]) -> None:
    row = only(json.dumps([link | members]).encode())
    assert (row.problem, row.channels) == (None, channels)


def test_the_columns_are_used_and_those_of_other_services_are_named(alice: Client) -> None:
    members = {"splitURL": None, "splitPercent": None, "cloaking": False, "utmSource": "", "FolderId": ""}
    notes = send(alice, shortio(**members), "?dry_run=1").get_json()["data"]["notes"]
    assert not [name for name in members if name in json.dumps(notes)]
    kutt = json.dumps([{"target": SALE, "address": "a"} | members]).encode()
    notes = send(alice, kutt, "?dry_run=1").get_json()["data"]["notes"]
    assert "cloaking" in json.dumps(notes)


# --- links at the root of a domain


@pytest.mark.parametrize(
    "file",
    [
        json.dumps([{"originalURL": SALE, "path": "", "shortURL": "https://s.example.org"}]).encode(),
        json.dumps([{"originalURL": SALE, "path": "/", "shortURL": "https://s.example.org/"}]).encode(),
        json.dumps([{"originalURL": SALE, "path": "/", "domain": "s.example.org"}]).encode(),
        f"short URLs,original paths,original URLs\nhttps://s.example.org/,,{SALE}\n".encode(),
        json.dumps([DUB | {"domain": "s.example.org", "key": "_root", "shortLink": "https://s.example.org"}]).encode(),
        f"Short link,Destination URL\nhttps://s.example.org/_root,{SALE}\n".encode(),
    ],
)
def test_a_root_link_says_what_becomes_of_it(file: bytes) -> None:
    row = only(file)
    assert row.problem == (
        "Row 1 is the start page of s.example.org, and no link. Set its target as `redirectroot` of that domain, and "
        "leave the row out."
    )
    assert row.members == {}


@pytest.mark.parametrize(
    "file",
    [
        json.dumps([{"originalURL": SALE, "path": "", "shortURL": "https://s.example.org/a"}]).encode(),
        json.dumps([{"originalURL": SALE, "path": "_root"}]).encode(),
        f"original URLs,paths\n{SALE},\n".encode(),
        f"Short link,Destination URL\nhttps://s.example.org/a,{SALE}\n".encode(),
        f"keyword,url,timestamp,clicks\n_root,{SALE},2026-01-01,1\n".encode(),
    ],
)
def test_other_links_are_no_root_links(file: bytes) -> None:
    assert only(file).problem is None


def test_the_preview_and_the_result_name_a_root_link(alice: Client, run_import: Import) -> None:
    file = json.dumps([SHORTIO, {"originalURL": OTHER, "path": "/", "shortURL": "https://s.example.org"}]).encode()
    rows = send(alice, file, "?dry_run=1").get_json()["data"]["rows"]
    assert (rows[0]["problem"], "`redirectroot`" in rows[1]["problem"]) == (None, True)
    assert counts(run_import(alice, file)) == ("done", 2, 1, 0, 0, 1)
