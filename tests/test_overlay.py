import json
from collections.abc import Callable
from typing import Any

import psycopg2
import pytest

from linkmgr.resources.overlay import POSITIONS, TYPES
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.races import during

FULL = {
    "type": "message",
    "name": "Spring",
    "message": "Ten percent off.\nToday only!",
    "link": "https://example.com/sale",
    "label": "To the sale",
    "position": "top",
    "color": "#fff",
    "background": "#1D4ED8",
}
COLOUR = "must be a color such as #f50 or #ff5500."


PICTURE = "message must begin with the URL of an image on its own line."
CHOICES = "message must have a question and at most 10 choices, each on its own line."


def read(client: Client, overlay_id: int) -> dict[str, Any]:
    """Return the members except the id and the date."""
    answer = client.get(f"/api/overlay/{overlay_id}")
    assert answer.status_code == 200
    data: dict[str, Any] = answer.get_json()["data"]
    assert data.pop("id") == overlay_id
    assert len(data.pop("date")) == len("2026-11-20 12:00:00")
    return data


def answered(sql: Sql, user_id: int, overlay_id: int, **answer: Any) -> int:
    """Add an answer as a visitor's form stores it."""
    added = sql(
        """
        INSERT INTO overlay_answers (user_id, overlay_id, answer)
        VALUES (%(user_id)s, %(overlay_id)s, %(answer)s)
        RETURNING id
        """,
        user_id=user_id,
        overlay_id=overlay_id,
        answer=json.dumps(answer),
    )
    return int(added[0]["id"])


def test_a_list_contains_only_the_users_own_overlays(alice: Client, bob: Client, sql: Sql) -> None:
    made = factories.overlay(sql, alice.id)
    factories.overlay(sql, bob.id)
    data = alice.get("/api/overlay").get_json()["data"]
    date = data["cta"][0].pop("date")
    assert len(date) == len("2026-11-20 12:00:00")
    assert data == {
        "result": 1,
        "perpage": 15,
        "currentpage": 1,
        "nextpage": 0,
        "maxpage": 1,
        "cta": [{"id": made, "type": "newsletter", "name": "News"}],
    }


@pytest.mark.parametrize("kind", TYPES)
def test_an_overlay_of_each_type_is_returned_as_it_was_sent(alice: Client, kind: str) -> None:
    sent = FULL | {"type": kind} | ({"message": "https://example.com/a.png\nSale"} if kind == "image" else {})
    assert read(alice, alice.add("/api/overlay/add", sent)) == sent


def test_only_type_and_name_are_required(alice: Client) -> None:
    overlay_id = alice.add("/api/overlay/add", {"type": "contact", "name": "Talk to us", "label": "", "color": None})
    assert read(alice, overlay_id) == {
        "type": "contact",
        "name": "Talk to us",
        "message": "",
        "link": "",
        "label": "",
        "position": "bottom",
        "color": "#ffffff",
        "background": "#1d4ed8",
    }


@pytest.mark.parametrize("position", POSITIONS)
def test_every_position_is_accepted(alice: Client, position: str) -> None:
    assert read(alice, alice.add("/api/overlay/add", FULL | {"position": position}))["position"] == position


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("type", "coupon"),
        ("name", "Summer"),
        ("message", "Over"),
        ("link", "https://example.org/"),
        ("label", "Go"),
        ("position", "left"),
        ("color", "#000000"),
        ("background", "#123"),
    ],
)
def test_an_update_changes_only_what_was_sent(alice: Client, member: str, value: str) -> None:
    overlay_id = alice.add("/api/overlay/add", FULL)
    answer = alice.put(f"/api/overlay/{overlay_id}/update", {member: value})
    record = alice.get(f"/api/overlay/{overlay_id}").get_json()["data"]
    assert answer.get_json() == {"error": 0, "message": "Overlay has been updated successfully.", "data": record}
    assert read(alice, overlay_id) == FULL | {member: value}


def test_optional_texts_can_be_cleared_and_required_ones_cannot(alice: Client) -> None:
    overlay_id = alice.add("/api/overlay/add", FULL)
    empty = {"message": "", "link": "", "label": ""}
    assert alice.put(f"/api/overlay/{overlay_id}/update", empty | {"color": None}).status_code == 200
    assert read(alice, overlay_id) == FULL | empty
    for member in ("type", "name", "position", "color", "background"):
        assert alice.put(f"/api/overlay/{overlay_id}/update", {member: ""}).status_code == 400


def test_a_poll_has_up_to_ten_distinct_choices(alice: Client) -> None:
    message = "Q?\n\n" + "\r\n".join("abcdefghijjj")
    overlay_id = alice.add("/api/overlay/add", FULL | {"type": "poll", "message": message})
    assert read(alice, overlay_id)["message"] == message


LONG = "Q?\n" + "\n".join("abcdefghijk")


@pytest.mark.parametrize(
    ("stored", "sent", "message"),
    [
        ({"message": LONG}, {"type": "poll"}, CHOICES),
        ({"message": LONG}, {"type": "poll", "message": LONG}, CHOICES),
        ({"type": "poll"}, {"message": LONG}, CHOICES),
        ({"message": "Our house"}, {"type": "image"}, PICTURE),
        ({"type": "image", "message": ""}, {"message": "Our house"}, PICTURE),
    ],
)
def test_a_type_or_a_message_alone_must_suit_the_stored_one(
    alice: Client, stored: dict[str, str], sent: dict[str, str], message: str
) -> None:
    overlay_id = alice.add("/api/overlay/add", FULL | stored)
    answer = alice.put(f"/api/overlay/{overlay_id}/update", {"label": "Changed"} | sent)
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)
    assert read(alice, overlay_id) == FULL | stored


def test_an_overlay_that_was_stored_with_too_many_choices_can_still_be_changed(alice: Client, sql: Sql) -> None:
    overlay_id = alice.add("/api/overlay/add", FULL | {"message": LONG})
    sql("UPDATE overlays SET type = 'poll' RETURNING 1")
    sent = {"type": "poll", "message": LONG, "label": "Go"}
    for changes in (sent, {"type": "poll"}, {"message": LONG}):
        assert alice.put(f"/api/overlay/{overlay_id}/update", changes).status_code == 200
    assert read(alice, overlay_id) == FULL | sent
    assert alice.put(f"/api/overlay/{overlay_id}/update", {"type": "contact"}).status_code == 200


def test_an_unknown_overlay_has_no_type(alice: Client) -> None:
    assert alice.put("/api/overlay/99/update", {"type": "poll"}).status_code == 404


def test_deleting_an_overlay_deletes_its_answers_and_keeps_its_links(
    alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    overlay_id = alice.add("/api/overlay/add", FULL)
    answered(sql, alice.id, overlay_id, email="visitor@example.com")
    link_id = factories.link(sql, alice.id)
    sql("UPDATE links SET type = 'overlay', overlay_id = %(overlay)s WHERE id = %(link)s RETURNING 1",
        overlay=overlay_id, link=link_id)  # fmt: skip
    answer = alice.delete(f"/api/overlay/{overlay_id}/delete")
    assert answer.get_json() == {"error": 0, "message": "Overlay has been deleted successfully."}
    assert alice.get(f"/api/overlay/{overlay_id}").status_code == 404
    assert alice.get(f"/api/overlay/{overlay_id}/answers").status_code == 404
    assert alice.delete(f"/api/overlay/{overlay_id}/delete").get_json()["message"] == (
        "There is no overlay with this id."
    )
    assert alice.get("/api/overlay").get_json()["data"]["result"] == 0
    run_jobs()
    assert sql("SELECT overlay_id FROM links WHERE id = %(link)s", link=link_id) == [{"overlay_id": None}]
    assert sql("SELECT FROM overlay_answers") == []


def test_answers_are_listed_newest_first_only_to_the_owner(alice: Client, bob: Client, sql: Sql) -> None:
    overlay_id, other_id = (alice.add("/api/overlay/add", FULL | {"type": "contact"}) for _ in range(2))
    first = answered(sql, alice.id, overlay_id, email="one@example.com", message="Hello\nthere")
    second = answered(sql, alice.id, overlay_id, email="two@example.com")
    answered(sql, alice.id, other_id, email="three@example.com")
    data = alice.get(f"/api/overlay/{overlay_id}/answers").get_json()["data"]
    for answer in data["answers"]:
        assert len(answer.pop("date")) == len("2026-11-20 12:00:00")
    assert data == {
        "result": 2,
        "perpage": 15,
        "currentpage": 1,
        "nextpage": 0,
        "maxpage": 1,
        "answers": [
            {"id": second, "answer": {"email": "two@example.com"}},
            {"id": first, "answer": {"email": "one@example.com", "message": "Hello\nthere"}},
        ],
    }
    assert bob.get(f"/api/overlay/{overlay_id}/answers").status_code == 404


def test_an_overlay_without_answers_has_an_empty_list(alice: Client) -> None:
    overlay_id = alice.add("/api/overlay/add", FULL)
    assert alice.get(f"/api/overlay/{overlay_id}/answers").get_json()["data"]["answers"] == []


WRONG = [
    ({"type": "popup"}, f"type must be one of {', '.join(TYPES)}."),
    ({"name": " "}, "name must not be empty."),
    ({"message": "x" * 2001}, "message must be at most 2000 characters."),
    ({"message": ["a"]}, "message must be a string."),
    ({"type": "image", "message": "Our house"}, PICTURE),
    ({"type": "image", "message": "\nhttps://a.example/"}, PICTURE),
    ({"type": "image", "message": "https://jo@a.example/"}, PICTURE),
    ({"type": "image", "message": "https://my;shop.example/"}, PICTURE),
    ({"type": "poll", "message": "Q?\n" + "\n".join("abcdefghijk")}, CHOICES),
    ({"label": "two\nlines"}, "label must not contain control characters."),
    ({"link": "ftp://example.com/"}, "link must be a URL that begins with http:// or https://."),
    ({"link": "http://127.0.0.1:5000/x"}, "link must not point to this service."),
    ({"position": "middle"}, f"position must be one of {', '.join(POSITIONS)}."),
    ({"color": "white"}, f"color {COLOUR}"),
    ({"color": "#ffff"}, f"color {COLOUR}"),
    ({"background": "#fff;x:url(//a.example)"}, f"background {COLOUR}"),
    ({"background": "#fff\n"}, f"background {COLOUR}"),
    ({"background": 255}, "background must be a string."),
]


@pytest.mark.parametrize(
    ("meanwhile", "sent", "message"),
    [("type = 'image'", {"message": "hello"}, PICTURE), ("message = 'hello'", {"type": "image"}, PICTURE)],
)
def test_a_type_and_a_message_that_are_sent_at_the_same_time_must_suit_each_other(
    alice: Client, raw: psycopg2.extensions.connection, meanwhile: str, sent: dict[str, str], message: str
) -> None:
    members = FULL | {"message": "https://example.com/a.png"}
    changed, deleted = (alice.add("/api/overlay/add", members) for _ in range(2))

    def update(overlay_id: int) -> Any:
        return alice.put(f"/api/overlay/{overlay_id}/update", sent)

    answer = during(raw, f"UPDATE overlays SET {meanwhile} WHERE id = {changed}", lambda: update(changed))
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)
    answer = during(raw, f"DELETE FROM overlays WHERE id = {deleted}", lambda: update(deleted))
    assert answer.status_code == 404


@pytest.mark.parametrize(("sent", "message"), WRONG)
def test_an_invalid_overlay_is_rejected(alice: Client, sent: dict[str, Any], message: str) -> None:
    answer = alice.post("/api/overlay/add", FULL | sent)
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)
    assert alice.get("/api/overlay").get_json()["data"]["result"] == 0


@pytest.mark.parametrize(("sent", "message"), WRONG)
def test_an_invalid_update_changes_nothing(alice: Client, sent: dict[str, Any], message: str) -> None:
    overlay_id = alice.add("/api/overlay/add", FULL)
    answer = alice.put(f"/api/overlay/{overlay_id}/update", {"label": "Changed"} | sent)
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)
    assert read(alice, overlay_id) == FULL
