from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql

FULL = {
    "name": "Launch",
    "title": "One moment, please",
    "message": "Our new shop is open.\n\nHave a look!",
    "link": "https://example.com/shop",
    "counter": 8,
    "banner": "https://example.com/banner.png",
}
COUNTER = "counter must be an integer from 1 to 60."


def read(client: Client, splash_id: int) -> dict[str, Any]:
    """Return the members except the id and the date."""
    answer = client.get(f"/api/splash/{splash_id}")
    assert answer.status_code == 200
    data: dict[str, Any] = answer.get_json()["data"]
    assert data.pop("id") == splash_id
    assert len(data.pop("date")) == len("2026-11-20 12:00:00")
    return data


def test_a_list_contains_only_the_users_own_splash_pages(alice: Client, bob: Client, sql: Sql) -> None:
    made = factories.splash(sql, alice.id)
    factories.splash(sql, bob.id)
    data = alice.get("/api/splash").get_json()["data"]
    date = data["splash"][0].pop("date")
    assert len(date) == len("2026-11-20 12:00:00")
    assert data == {
        "result": 1,
        "perpage": 15,
        "currentpage": 1,
        "nextpage": 0,
        "maxpage": 1,
        "splash": [{"id": made, "name": "Welcome"}],
    }


def test_a_splash_page_is_returned_as_it_was_sent(alice: Client) -> None:
    assert read(alice, alice.add("/api/splash/add", FULL)) == FULL


def test_only_the_name_is_required(alice: Client) -> None:
    splash_id = alice.add("/api/splash/add", {"name": "Plain", "title": "", "counter": None})
    assert read(alice, splash_id) == {
        "name": "Plain",
        "title": "",
        "message": "",
        "link": "",
        "counter": 5,
        "banner": "",
    }


@pytest.mark.parametrize("member", FULL)
def test_an_update_changes_only_what_was_sent(alice: Client, member: str) -> None:
    other = FULL | {"name": "Other", "title": "T", "message": "M", "counter": 60}
    other |= {"link": "https://example.org/", "banner": "https://example.org/b.png"}
    splash_id = alice.add("/api/splash/add", FULL)
    answer = alice.put(f"/api/splash/{splash_id}/update", {member: other[member]})
    record = alice.get(f"/api/splash/{splash_id}").get_json()["data"]
    assert answer.get_json() == {"error": 0, "message": "Splash page has been updated successfully.", "data": record}
    assert read(alice, splash_id) == FULL | {member: other[member]}


def test_optional_texts_can_be_cleared_and_the_name_cannot(alice: Client) -> None:
    splash_id = alice.add("/api/splash/add", FULL)
    empty = {"title": "", "message": "", "link": "", "banner": ""}
    assert alice.put(f"/api/splash/{splash_id}/update", empty | {"counter": None}).status_code == 200
    assert read(alice, splash_id) == FULL | empty
    assert alice.put(f"/api/splash/{splash_id}/update", {"name": ""}).status_code == 400


def test_deleting_a_splash_page_keeps_its_links(alice: Client, sql: Sql, run_jobs: Callable[[], None]) -> None:
    splash_id = alice.add("/api/splash/add", FULL)
    link_id = factories.link(sql, alice.id)
    sql("UPDATE links SET type = 'splash', splash_id = %(splash)s WHERE id = %(link)s RETURNING 1",
        splash=splash_id, link=link_id)  # fmt: skip
    answer = alice.delete(f"/api/splash/{splash_id}/delete")
    assert answer.get_json() == {"error": 0, "message": "Splash page has been deleted successfully."}
    assert alice.get(f"/api/splash/{splash_id}").status_code == 404
    assert alice.delete(f"/api/splash/{splash_id}/delete").get_json()["message"] == (
        "There is no splash page with this id."
    )
    assert alice.get("/api/splash").get_json()["data"]["result"] == 0
    run_jobs()
    assert sql("SELECT splash_id FROM links WHERE id = %(link)s", link=link_id) == [{"splash_id": None}]


WRONG = [
    ({"name": " "}, "name must not be empty."),
    ({"name": "two\nlines"}, "name must not contain control characters."),
    ({"title": 5}, "title must be a string."),
    ({"title": "x" * 256}, "title must be at most 255 characters."),
    ({"message": "x" * 2001}, "message must be at most 2000 characters."),
    ({"message": "bell\a"}, "message must not contain control characters."),
    ({"link": "javascript:alert(1)"}, "link must be a URL that begins with http:// or https://."),
    ({"link": "http://127.0.0.1:5000/x"}, "link must not point to this service."),
    ({"banner": "data:image/png;base64,"}, "banner must be a URL that begins with http:// or https://."),
    ({"banner": "banner.png"}, "banner must be a URL that begins with http:// or https://."),
    ({"counter": 0}, COUNTER),
    ({"counter": 61}, COUNTER),
    ({"counter": -1}, COUNTER),
    ({"counter": 10**30}, COUNTER),
    ({"counter": True}, COUNTER),
    ({"counter": 5.0}, COUNTER),
    ({"counter": "5"}, COUNTER),
    ({"counter": [5]}, COUNTER),
]


@pytest.mark.parametrize(("sent", "message"), WRONG)
def test_an_invalid_splash_page_is_rejected(alice: Client, sent: dict[str, Any], message: str) -> None:
    answer = alice.post("/api/splash/add", FULL | sent)
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)
    assert alice.get("/api/splash").get_json()["data"]["result"] == 0


@pytest.mark.parametrize(("sent", "message"), WRONG)
def test_an_invalid_update_changes_nothing(alice: Client, sent: dict[str, Any], message: str) -> None:
    splash_id = alice.add("/api/splash/add", FULL)
    answer = alice.put(f"/api/splash/{splash_id}/update", {"title": "Changed"} | sent)
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)
    assert read(alice, splash_id) == FULL
