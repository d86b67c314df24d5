from typing import Any

import pytest

from linkmgr.resources.pixels import TYPES
from tests.conftest import Client

PIXEL = {"type": "gapixel", "name": "Shop", "tag": "UA-1"}


@pytest.mark.parametrize("kind", TYPES)
def test_a_pixel_of_each_type_is_listed_as_it_was_sent(alice: Client, kind: str) -> None:
    pixel_id = alice.add("/api/pixel/add", PIXEL | {"type": kind})
    data = alice.get("/api/pixels").get_json()["data"]
    date = data["pixels"][0].pop("date")
    assert len(date) == len("2026-11-20 12:00:00")
    assert data == {
        "result": 1,
        "perpage": 15,
        "currentpage": 1,
        "nextpage": 0,
        "maxpage": 1,
        "pixels": [{"id": pixel_id, "type": kind, "name": "Shop", "tag": "UA-1"}],
    }


def test_one_pixel_is_returned_as_it_is_listed(alice: Client) -> None:
    first, _ = (alice.add("/api/pixel/add", PIXEL | {"name": name}) for name in ("One", "Two"))
    listed = alice.get("/api/pixels").get_json()["data"]["pixels"][1]
    assert alice.get(f"/api/pixel/{first}").get_json() == {"error": 0, "data": listed}


def test_an_update_changes_only_what_was_sent(alice: Client) -> None:
    pixel_id = alice.add("/api/pixel/add", PIXEL)
    answer = alice.put(f"/api/pixel/{pixel_id}/update", {"tag": "UA-2", "type": "bing"})
    record = alice.get(f"/api/pixel/{pixel_id}").get_json()["data"]
    assert answer.get_json() == {
        "error": 0,
        "message": "Pixel has been updated successfully.",
        "warnings": ["The member 'type' cannot be changed and was ignored."],
        "data": record,
    }
    pixel = alice.get("/api/pixels").get_json()["data"]["pixels"][0]
    assert (pixel["name"], pixel["tag"], pixel["type"]) == ("Shop", "UA-2", "gapixel")
    alice.put(f"/api/pixel/{pixel_id}/update", {"tag": "UA-2", "name": "Store"})
    assert alice.get("/api/pixels").get_json()["data"]["pixels"][0]["name"] == "Store"


def test_a_deleted_pixel_is_not_found(alice: Client) -> None:
    pixel_id = alice.add("/api/pixel/add", PIXEL)
    answer = alice.delete(f"/api/pixel/{pixel_id}/delete")
    assert answer.get_json() == {"error": 0, "message": "Pixel has been deleted successfully."}
    assert alice.get("/api/pixels").get_json()["data"]["result"] == 0
    assert alice.delete(f"/api/pixel/{pixel_id}/delete").status_code == 404


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({}, "type is required; name is required; tag is required."),
        (PIXEL | {"type": "mypixel"}, f"type must be one of {', '.join(TYPES)}."),
        (PIXEL | {"name": 5}, "name must be a string."),
        (PIXEL | {"name": " "}, "name must not be empty."),
        (PIXEL | {"name": "x" * 256}, "name must be at most 255 characters."),
        (PIXEL | {"tag": "a b"}, "tag must be 1 to 100 letters, digits, '_', '.', ':', '/' or '-'."),
        (PIXEL | {"tag": "x" * 101}, "tag must be 1 to 100 letters, digits, '_', '.', ':', '/' or '-'."),
        (PIXEL | {"tag": "x\n"}, "tag must be 1 to 100 letters, digits, '_', '.', ':', '/' or '-'."),
    ],
)
def test_an_invalid_pixel_is_rejected(alice: Client, sent: dict[str, Any], message: str) -> None:
    answer = alice.post("/api/pixel/add", sent)
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)
    assert alice.get("/api/pixels").get_json()["data"]["result"] == 0


def test_an_update_needs_the_tag(alice: Client) -> None:
    pixel_id = alice.add("/api/pixel/add", PIXEL)
    assert alice.put(f"/api/pixel/{pixel_id}/update", {"name": "x"}).status_code == 400
    assert alice.put(f"/api/pixel/{pixel_id}/update", {"name": "", "tag": "x"}).status_code == 400
    assert alice.get("/api/pixels").get_json()["data"]["pixels"][0]["tag"] == "UA-1"
