"""Avatars of users and bio pages, which are rendered from the name alone."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from PIL import Image
from werkzeug.test import TestResponse

from tests.conftest import BASE_URL, Client


def fetched(app: Flask, path: str, **headers: str) -> TestResponse:
    return app.test_client().get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def avatar_image(app: Flask, name: str, folder: str = "/avatar") -> Image.Image:
    answer = fetched(app, f"{folder}/{name}.png")
    assert (answer.status_code, answer.mimetype) == (200, "image/png")
    image = Image.open(io.BytesIO(answer.data))
    image.load()
    return image


def test_the_url_in_the_api_is_an_image(app: Flask, alice: Client) -> None:
    avatar: Any = alice.get("/api/account").get_json()["data"]["avatar"]
    assert fetched(app, avatar.removeprefix(BASE_URL)).mimetype == "image/png"
    assert avatar_image(app, "alice").size == (256, 256)


def test_a_user_that_does_not_exist_has_no_avatar(app: Flask, alice: Client, admin: Client) -> None:
    assert fetched(app, "/avatar/nobody.png").status_code == 404
    tag = fetched(app, "/avatar/alice.png").headers["ETag"]
    admin.delete(f"/api/user/{alice.id}/delete")
    assert fetched(app, "/avatar/alice.png", If_None_Match=tag).status_code == 404


@pytest.mark.usefixtures("alice")
def test_upper_case_gives_the_same_image(app: Flask) -> None:
    assert avatar_image(app, "Alice").tobytes() == avatar_image(app, "alice").tobytes()


@pytest.mark.usefixtures("alice", "bob")
def test_an_image_in_the_browser_cache_is_not_sent_again(app: Flask) -> None:
    first = fetched(app, "/avatar/alice.png")
    assert first.headers["Cache-Control"] == "public, max-age=86400"
    again = fetched(app, "/avatar/alice.png", If_None_Match=first.headers["ETag"])
    assert (again.status_code, again.data) == (304, b"")
    assert fetched(app, "/avatar/bob.png", If_None_Match=first.headers["ETag"]).status_code == 200


@pytest.mark.parametrize("name", ["___", "-.-", "a.b", "7up", "x" * 50, "..."])
def test_every_valid_username_has_an_avatar(app: Flask, register: Callable[..., Client], name: str) -> None:
    user = avatar_image(app, register(name).username)
    assert avatar_image(app, name, "/avatar/bio").tobytes() == user.tobytes()


@pytest.mark.parametrize("name", ["ab", "x" * 51, "a b c", "%C3%A9t%C3%A9", "abc%0A", "%00%00%00", "abc.png/"])
def test_other_names_have_no_image(app: Flask, name: str) -> None:
    assert fetched(app, f"/avatar/{name}.png").status_code == 404
    assert fetched(app, f"/avatar/bio/{name}.png").status_code == 404
