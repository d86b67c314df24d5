"""A record has at most 64 KiB, whichever way it is stored, and what is refused is not written."""

import json
from typing import Any

from flask.testing import FlaskClient
from werkzeug.datastructures import MultiDict

from tests.conftest import Client
from tests.support.archives import archive
from tests.support.factories import Sql
from tests.support.imported import Import

SIZE = "SELECT pg_total_relation_size('links') AS size"
NAMES = (
    "de", "fr", "it", "es", "pt", "nl", "pl", "sv", "da", "fi", "cs", "hu", "ro", "bg", "el", "et", "lv", "lt", "sl"
)  # fmt: skip
COUNTRIES = (
    "germany", "france", "italy", "spain", "portugal", "poland", "sweden", "denmark", "finland", "hungary", "romania",
    "bulgaria", "greece", "estonia", "latvia", "lithuania", "slovenia", "croatia", "austria", "belgium",
)  # fmt: skip
Body = dict[str, Any]


def languages(number: int) -> list[Body]:
    """Return targets of 2 KB each."""
    return [{"language": name, "link": f"https://example.com/{name * 950}"} for name in NAMES[:number]]


def countries(number: int) -> list[Body]:
    return [{"location": name, "link": f"https://example.com/{name * 250}"[:2000]} for name in COUNTRIES[:number]]


LARGE = {"languagetarget": languages(19), "geotarget": countries(20)}  # 37 KB and 32 KB


def test_a_large_element_of_a_bulk_request_is_refused_and_the_others_are_stored(alice: Client) -> None:
    urls = [{"url": "https://example.com/a"}, {"url": "https://example.com/b"} | LARGE]
    body = alice.post("/api/urls/bulk", {"urls": urls}).get_json()
    assert [row.get("code") for row in body["results"]] == [None, "too_large"]
    assert alice.get("/api/urls").get_json()["data"]["result"] == 1


def test_a_link_does_not_grow_beyond_the_size_of_a_record_by_several_updates(alice: Client) -> None:
    path = f"/api/url/{alice.add('/api/url/add', {'url': 'https://example.com/a'})}"
    assert alice.put(f"{path}/update", {"languagetarget": languages(19)}).status_code == 200
    answer = alice.put(f"{path}/update", {"geotarget": countries(20)})
    assert (answer.status_code, answer.get_json()["code"]) == (413, "too_large")
    assert alice.put(f"{path}/update", {"geotarget": countries(10)}).status_code == 200


def test_refused_updates_of_many_links_write_nothing(alice: Client, sql: Sql) -> None:
    urls = [{"url": f"https://example.com/{n}"} for n in range(100)]
    ids = [row["id"] for row in alice.post("/api/urls/bulk", {"urls": urls}).get_json()["results"]]
    before = sql(SIZE)[0]["size"]
    for _ in range(3):
        body = alice.put("/api/urls/bulk", {"ids": ids, "data": LARGE}).get_json()
        assert {row["code"] for row in body["results"]} == {"too_large"}
    assert sql(SIZE)[0]["size"] - before < 1 << 20


def test_a_link_that_is_too_large_is_refused_whichever_way_it_comes(
    alice: Client, console: FlaskClient, run_import: Import, sql: Sql
) -> None:
    small: Body = {"url": "https://example.com/a", "custom": "small", "alias": "small", "clicks": 0, "uniqueclicks": 0}
    # The kind of a file is recognized by its first 64 KiB, so the small link comes first.
    pair = [small, small | {"custom": "large", "alias": "large"} | LARGE]
    ways = {"The limit is 64 KiB": archive(links=pair), "more than 65536 characters": json.dumps(pair).encode()}
    for sentence, file in ways.items():
        found = run_import(alice, file)
        assert (found["state"], found["failed"]) == ("done", 1)
        assert sentence in alice.get(f"/api/imports/{found['id']}/errors.csv").text
    form = MultiDict([("url", "https://example.com/a")])
    for member, label in (("languagetarget", "language"), ("geotarget", "location")):
        for target in LARGE[member]:
            form.add(f"{member}.{label}", target[label])
            form.add(f"{member}.link", target["link"])
    answer = console.post("/console/links/new", data=form)
    assert (answer.status_code, "64 KiB" in answer.text) == (413, True)
    assert sql("SELECT alias FROM links") == [{"alias": "small"}]


def test_bio_pages_are_bounded_where_they_are_stored(sql: Sql) -> None:
    """Links, the only other records with many long values, are checked by the function that stores them."""
    rules = sql("SELECT conrelid::regclass::text AS name FROM pg_constraint WHERE conname = 'too_large' ORDER BY 1")
    assert [rule["name"] for rule in rules] == ["bios"]
