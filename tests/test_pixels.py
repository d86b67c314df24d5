"""Pixels, as an example of a resource. Its types, members and refusals are tested for all resources at once."""

from tests.conftest import Client

PIXEL = {"type": "gapixel", "name": "Shop", "tag": "UA-1"}


def test_a_pixel_is_created_listed_read_changed_and_deleted(alice: Client) -> None:
    pixel_id = alice.add("/api/pixel/add", PIXEL)
    [listed] = alice.get("/api/pixels").get_json()["data"]["pixels"]
    assert listed == {"id": pixel_id, "date": listed["date"], "updated": listed["date"]} | PIXEL
    assert len(listed["date"]) == len("2026-11-20 12:00:00")
    assert alice.get(f"/api/pixel/{pixel_id}").get_json() == {"error": 0, "data": listed, "record": listed}
    answer = alice.put(f"/api/pixel/{pixel_id}/update", {"tag": "UA-2", "type": "bing"})
    changed = listed | {"tag": "UA-2", "updated": answer.get_json()["record"]["updated"]}
    assert answer.get_json() == {
        "error": 0,
        "message": "Pixel has been updated successfully.",
        "warnings": ["The member 'type' cannot be changed and was ignored."],
        **dict.fromkeys(("data", "record"), changed),
    }
    answer = alice.delete(f"/api/pixel/{pixel_id}/delete")
    assert answer.get_json() == {"error": 0, "message": "Pixel has been deleted successfully."}
    assert alice.get("/api/pixels").get_json()["data"]["result"] == 0
