"""Avatars are drawn from the name alone."""

import io
from typing import Any

import pytest
from flask import Flask
from PIL import Image
from werkzeug.test import TestResponse

from tests.conftest import BASE_URL, Client


def fetched(app: Flask, path: str, **headers: str) -> TestResponse:
    return app.test_client().get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def drawn(app: Flask, name: str) -> Image.Image:
    answer = fetched(app, f"/avatar/{name}.png")
    assert (answer.status_code, answer.mimetype) == (200, "image/png")
    image = Image.open(io.BytesIO(answer.data))
    image.load()
    return image


def test_the_address_that_the_api_gives_is_a_picture(app: Flask, alice: Client) -> None:
    avatar: Any = alice.get("/api/account").get_json()["data"]["avatar"]
    assert fetched(app, avatar.removeprefix(BASE_URL)).mimetype == "image/png"
    assert drawn(app, "alice").size == (256, 256)


def test_names_that_nobody_has_are_drawn_the_same_way(app: Flask, alice: Client) -> None:
    answers = [fetched(app, f"/avatar/{name}.png") for name in (alice.username, "nobody.at.all")]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert set(answers[0].headers.keys()) == set(answers[1].headers.keys())
    assert answers[0].data != answers[1].data


def test_upper_case_draws_the_same_picture(app: Flask) -> None:
    assert drawn(app, "Alice").tobytes() == drawn(app, "alice").tobytes()


def test_a_picture_that_the_browser_has_is_not_sent_again(app: Flask) -> None:
    first = fetched(app, "/avatar/alice.png")
    assert first.headers["Cache-Control"] == "public, max-age=86400"
    again = fetched(app, "/avatar/alice.png", If_None_Match=first.headers["ETag"])
    assert (again.status_code, again.data) == (304, b"")
    assert fetched(app, "/avatar/bob.png", If_None_Match=first.headers["ETag"]).status_code == 200


@pytest.mark.parametrize("name", ["___", "-.-", "a.b", "7up", "x" * 50, "..."])
def test_every_name_that_a_user_can_have_is_drawn(app: Flask, name: str) -> None:
    drawn(app, name)


@pytest.mark.parametrize("name", ["ab", "x" * 51, "a b c", "%C3%A9t%C3%A9", "abc%0A", "%00%00%00", "abc.png/"])
def test_other_names_have_no_picture(app: Flask, name: str) -> None:
    assert fetched(app, f"/avatar/{name}.png").status_code == 404
