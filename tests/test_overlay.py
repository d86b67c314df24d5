from collections.abc import Callable
from typing import Any

import psycopg2
import pytest

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.races import during
from tests.support.refusals import Refusal, schemas

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


PICTURE = "message must begin with the URL of an image on its own line."
CHOICES = "message must have a question and at most 10 choices, each on its own line."


def read(client: Client, overlay_id: int) -> dict[str, Any]:
    """Return the members except the id and the date."""
    answer = client.get(f"/api/overlay/{overlay_id}")
    assert answer.status_code == 200
    data: dict[str, Any] = answer.get_json()["data"]
    assert data.pop("id") == overlay_id
    assert data.pop("updated") >= data["date"]
    assert len(data.pop("date")) == len("2026-11-20 12:00:00")
    return data


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


def test_deleting_an_overlay_deletes_its_answers(alice: Client, sql: Sql, run_jobs: Callable[[], None]) -> None:
    overlay_id = alice.add("/api/overlay/add", FULL)
    factories.answer(sql, alice.id)
    assert alice.delete(f"/api/overlay/{overlay_id}/delete").status_code == 200
    assert alice.get(f"/api/overlay/{overlay_id}/answers").status_code == 404
    run_jobs()
    assert sql("SELECT FROM overlay_answers") == []


@pytest.mark.parametrize(
    ("type_", "text", "message"),
    [
        *(("image", text, PICTURE) for text in ("Our house", "\nhttps://a.example/", "https://jo@a.example/")),
        ("image", "https://my;shop.example/", PICTURE),
        ("poll", LONG, CHOICES),
    ],
)
def test_a_message_must_suit_the_type(refusal: Refusal, type_: str, text: str, message: str) -> None:
    sent = {"type": type_, "name": "Spring", "message": text}
    assert [refusal(schema, sent) for schema in schemas("overlay")] == [message, message]


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
