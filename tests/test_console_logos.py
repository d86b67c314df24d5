"""Logos that users upload in the console."""

import re
from io import BytesIO

import pytest
from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.logos import image, noise
from tests.support.pages import fields, get, message
from tests.support.qr_editor import NEW, as_form, details, preview


def test_an_uploaded_logo_is_kept_by_a_preview_and_stored_as_a_small_image(
    console: FlaskClient, alice: Client, sql: Sql
) -> None:
    sent = as_form("text", "Hello", again="preview") | {"logo.file": (BytesIO(noise()), "../me.png")}
    page = console.post(NEW, data=sent).text
    assert preview(page).ec_level == "H"
    again = fields(page)
    assert again["logo.data"] != [""]
    answer = console.post(NEW, data=again)
    assert answer.status_code == 303, answer.text
    code = details(alice, answer.headers["Location"])
    assert re.fullmatch("upload:[0-9a-f]{16}", code["logo"])
    stored = bytes(sql("SELECT image AS logo FROM logos")[0]["logo"])
    assert stored.startswith(b"\x89PNG")
    # The API keeps the image when it is sent what it answered.
    assert alice.put(f"/api/qr/{code['id']}/update", {"data": "Hi", "logo": code["logo"]}).status_code == 200
    assert bytes(sql("SELECT image AS logo FROM logos")[0]["logo"]) == stored
    assert alice.post("/api/qr/add", {"type": "text", "data": "x", "logo": code["logo"]}).status_code == 400


def test_a_logo_is_kept_replaced_and_removed(console: FlaskClient, alice: Client, sql: Sql) -> None:
    sent = as_form("text", "Hello") | {"logo.file": (BytesIO(noise()), "a.png")}
    path = f"{console.post(NEW, data=sent).headers['Location']}/edit"
    logos = [bytes(sql("SELECT image AS logo FROM logos")[0]["logo"])]
    page = get(console, path)
    assert preview(page).ec_level == "H"
    assert console.post(path, data=fields(page) | {"name": "New"}).status_code == 303
    assert bytes(sql("SELECT image AS logo FROM logos")[0]["logo"]) == logos[0]
    replaced = fields(get(console, path)) | {"logo.file": (BytesIO(image(form="JPEG")), "b.jpg")}
    assert console.post(path, data=replaced).status_code == 303
    assert bytes(sql("SELECT image AS logo FROM logos")[0]["logo"]) not in ([], logos[0])
    assert console.post(path, data=fields(get(console, path)) | {"logo.remove": "1"}).status_code == 303
    assert sql("SELECT logo_hash, logo_source FROM qrs") == [{"logo_hash": None, "logo_source": None}]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"no image", "Logo must be a PNG or JPEG image"),
        (b"x" * (33 << 10), "Logo must be at most 32 KiB."),
        (image(size=(2001, 2001)), "Logo must be a PNG or JPEG image of at most 4 megapixels"),
    ],
)
def test_an_unusable_upload_is_refused_beside_its_field(console: FlaskClient, content: bytes, text: str) -> None:
    sent = as_form("text", "Hello") | {"logo.file": (BytesIO(content), "a.png")}
    answer = console.post(NEW, data=sent)
    assert answer.status_code == 400
    assert text in message(answer.text, "logo")


def test_a_url_is_fetched_only_when_the_form_is_saved(console: FlaskClient, sql: Sql) -> None:
    sent = as_form("text", "Hello", again="preview", logo="https://logo.example.com/x.png")
    page = console.post(NEW, data=sent).text
    assert preview(page).ec_level == "H"  # with a gray square in place of the logo
