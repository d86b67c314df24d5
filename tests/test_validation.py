"""Request validation: each rule on bodies, paths and queries, tested once."""

import pytest

from linkmgr.core.database import statements
from linkmgr.repository import pixels
from tests.conftest import Client

FORMS = ["application/x-www-form-urlencoded", "Multipart/Form-Data; boundary=x"]
BYTE_ORDER_MARK = "it begins with a byte order mark. Remove the mark."
PIXEL = {"type": "bing", "name": "n", "tag": "t"}


def send(client: Client, body: bytes | str, content_type: str = "application/json") -> tuple[int, str]:
    answer = client.post("/api/pixel/add", data=body, content_type=content_type)
    return answer.status_code, answer.get_json().get("message", "")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"name": ', "The body is not valid JSON: syntax error at character 9."),
        (b"[]", "The body must be a JSON object."),
        (b"null", "The body must be a JSON object."),
        (b"5", "The body must be a JSON object."),
        (b'"text"', "The body must be a JSON object."),
        (b'{"name": "a", "name": "b"}', "The body cannot be read: an object contains a member twice."),
        (b'{"x": {"a": 1, "a": 2}}', "The body cannot be read: an object contains a member twice."),
        (b'{"x": NaN}', "The body cannot be read: NaN is not a JSON value."),
        (b'{"x": -Infinity}', "The body cannot be read: -Infinity is not a JSON value."),
        (b'{"x": 1e999}', "The body cannot be read: a number is too large."),
        (b'{"x": ' + b"9" * 5000 + b"}", "The body cannot be read: a number is too large."),
        (b'{"x": "\\u0000"}', "The body cannot be read: a string contains a NUL character or an unpaired surrogate."),
        (b'{"\\u0000": 1}', "The body cannot be read: a string contains a NUL character or an unpaired surrogate."),
        (b'{"x": ["\\ud800"]}', "The body cannot be read: a string contains a NUL character or an unpaired surrogate."),
        (b'{"x": ' + b"[" * 40 + b"]" * 40 + b"}", "The body cannot be read: it is nested more than 32 levels deep."),
        (b"[" * 60_000, "The body cannot be read: it is nested more than 32 levels deep."),
        (b'{"a":' * 12_000, "The body cannot be read: it is nested more than 32 levels deep."),
        ('{"name": "ä"}'.encode("utf-16"), "The body is not valid UTF-8."),
        (b'{"name": "\xff"}', "The body is not valid UTF-8."),
        (b'\xef\xbb\xbf{"name": "a"}', f"The body is not valid JSON: {BYTE_ORDER_MARK}"),
    ],
)
def test_a_body_that_is_not_strict_json_is_rejected(alice: Client, body: bytes, message: str) -> None:
    status, found = send(alice, body)
    assert status == 400
    assert found.split(" at character")[0].rstrip(".") == message.split(" at character", maxsplit=1)[0].rstrip(".")


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/json; charset=utf-8", "application/vnd.x", *FORMS]
)
def test_json_is_accepted_with_any_content_type(alice: Client, content_type: str) -> None:
    assert send(alice, b'{"type": "bing", "name": "n", "tag": "t"}', content_type)[0] == 200


@pytest.mark.parametrize("content_type", FORMS)
@pytest.mark.parametrize("body", [b"name=n", b"", b'{"name": ', b"\xff"])
def test_a_form_is_rejected_and_the_message_names_the_required_header(
    alice: Client, body: bytes, content_type: str
) -> None:
    message = "The body must be JSON. Send the header 'Content-Type: application/json'."
    assert send(alice, body, content_type) == (415, message)


@pytest.mark.parametrize("content_type", FORMS)
@pytest.mark.parametrize("body", [b"[]", b'{"name": "a", "name": "b"}', b'{"x": "\\u0000"}', b"[" * 60_000])
def test_json_that_is_not_accepted_is_no_form(alice: Client, body: bytes, content_type: str) -> None:
    assert send(alice, body, content_type) == send(alice, body)
    assert send(alice, body)[0] == 400


def test_a_body_above_64_kib_is_rejected(alice: Client) -> None:
    assert send(alice, b" " * (64 * 1024 + 1)) == (413, "The body is too large. The limit is 64 KiB.")
    fits = b'{"type": "bing", "name": "n", "tag": "t"}'
    assert send(alice, fits + b" " * (64 * 1024 - len(fits)))[0] == 200


def test_members_that_the_specification_does_not_name_are_ignored(alice: Client, bob: Client) -> None:
    pixel_id = alice.add("/api/pixel/add", PIXEL | {"id": 7, "user_id": bob.id, "date": "x", "__proto__": {}})
    assert alice.get("/api/pixels").get_json()["data"]["pixels"][0]["id"] == pixel_id
    assert bob.get("/api/pixels").get_json()["data"]["result"] == 0


def test_problems_are_in_the_order_of_the_documentation_however_the_members_are_sent(alice: Client) -> None:
    response = alice.post("/api/url/add", json={"status": 1, "unknown": 2, "custom": "!", "type": []})
    assert [error["field"] for error in response.get_json()["errors"]] == ["custom", "type", "status", "url"]


def test_reads_and_deletes_ignore_a_body(alice: Client) -> None:
    pixel_id = alice.add("/api/pixel/add", PIXEL)
    headers = {"Content-Type": "application/json"}
    assert alice.get("/api/pixels", data=b"{", headers=headers).status_code == 200
    assert alice.delete(f"/api/pixel/{pixel_id}/delete", data=b"", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "pixel_id", ["0", "007", "9223372036854775807", "9223372036854775808", "9" * 400], ids=lambda x: x[:20]
)
def test_an_id_that_no_row_can_have_is_not_found(alice: Client, pixel_id: str) -> None:
    answer = alice.delete(f"/api/pixel/{pixel_id}/delete")
    assert (answer.status_code, answer.get_json()["message"]) == (404, "There is no pixel with this id.")


@pytest.mark.parametrize("path", ["/api/account/", "/api/pixels/"])
def test_a_trailing_slash_is_accepted(alice: Client, path: str) -> None:
    assert alice.get(path).status_code == 200


@pytest.mark.parametrize(
    "path", ["/api//account", "/api/account//", "/api/", "/api", "/api/%2e%2e/account", "/api/%ff"]
)
def test_other_spellings_of_a_path_are_not_found_and_never_redirected(alice: Client, path: str) -> None:
    assert alice.get(path).status_code == 404


def test_a_bug_is_a_500_in_the_envelope(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_user_id: int, **_paging: int) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(pixels, "index", fail)
    headers = {"Authorization": f"Bearer {alice.key}"}
    answer = alice.http.get("/api/pixels", headers=headers)
    assert answer.status_code == 500
    assert answer.get_json()["error"] == 1
    assert "secret" not in answer.text
    assert "X-RateLimit-Remaining" in answer.headers
    assert "Retry-After" not in answer.headers


def test_a_value_that_only_postgresql_rejects_is_a_400(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixels, "add", lambda *_: statements.row("SELECT 1 / 0 AS never"))
    answer = alice.post("/api/pixel/add", PIXEL)
    assert answer.status_code == 400
    assert answer.get_json()["message"] == "A value in the request cannot be stored. Check the members of the body."
