"""Images of QR codes and avatars under load and in caches: one at a time of an owner, and only when they changed."""

from functools import partial
from typing import Any

import pytest
from flask import Flask

from linkmgr.console import avatar
from linkmgr.qr import image
from linkmgr.repository import qr
from tests.conftest import Client
from tests.support.codes import add_code, clear_cache, decoded, fetched, pixels, row_of
from tests.support.factories import Sql
from tests.support.logos import logo_file
from tests.support.slots import full, taken


def test_images_leave_half_of_the_places_to_other_requests(app: Flask, alice: Client) -> None:
    path = add_code(alice)
    with taken(app, "images"):
        refused = app.test_client().get(f"{path}?size=1000", headers={"Accept": "application/json"})
        assert (refused.status_code, refused.get_json()["code"]) == (503, "image_busy")
        assert refused.headers["Retry-After"] == "2"
        assert alice.get("/api/urls/export").status_code == 200
    assert fetched(alice, f"{path}?size=1000").status_code == 200


@pytest.mark.parametrize("cache", [image._code, avatar._render])
def test_codes_and_avatars_need_a_place_unless_they_are_kept(app: Flask, alice: Client, cache: Any) -> None:
    path = add_code(alice) if cache is image._code else "/avatar/alice.png"
    cache.cache_clear()
    with full(app):
        assert fetched(alice, path).status_code == 503
    assert fetched(alice, path).status_code == 200
    with full(app):
        assert fetched(alice, path).status_code == 200


@pytest.mark.parametrize("query", ["", "?format=svg", "?size=100"])
def test_an_unchanged_image_is_neither_rendered_nor_sent_again(
    alice: Client, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    path = add_code(alice, logo=logo_file(alice, "noise")) + query
    first = fetched(alice, path)
    tag = first.headers["ETag"]
    assert tag.startswith('"')
    assert first.headers["Cache-Control"] == "no-cache"
    monkeypatch.setattr(image, "render", None)
    again = fetched(alice, path)
    assert (again.data, again.headers["ETag"]) == (first.data, tag)
    clear_cache()
    read = qr.image_source
    without_logo = partial(read, with_logo=False)
    monkeypatch.setattr(qr, "image_source", lambda *code, with_logo: None if with_logo else without_logo(*code))
    for sent in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        unchanged = fetched(alice, path, If_None_Match=sent)
        assert (unchanged.status_code, unchanged.data, unchanged.headers["ETag"]) == (304, b"", tag)
        assert unchanged.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "changes", [{"foreground": "rgb(0,0,90)"}, {"background": "rgb(255,255,0)"}, {"logo": ""}, {"logo": "plain.png"}]
)
def test_an_update_takes_effect_at_once(alice: Client, sql: Sql, changes: dict[str, str]) -> None:
    path = add_code(alice, logo=logo_file(alice, "noise"))
    logo_file(alice, "plain")
    before = fetched(alice, path)
    alice.put(f"/api/qr/{row_of(sql, path)}/update", {"data": "y"} | changes)
    after = fetched(alice, path, If_None_Match=before.headers["ETag"])
    assert after.status_code == 200
    assert after.data != before.data
    assert after.headers["ETag"] != before.headers["ETag"]


def test_an_update_of_the_data_does_not_change_the_image(alice: Client, sql: Sql) -> None:
    path = add_code(alice)
    before = fetched(alice, path)
    alice.put(f"/api/qr/{row_of(sql, path)}/update", {"data": "another text"})
    assert fetched(alice, path, If_None_Match=before.headers["ETag"]).status_code == 304


def test_an_update_of_wifi_data_changes_the_image(alice: Client, sql: Sql) -> None:
    path = add_code(alice, "wifi")
    before = fetched(alice, path)
    alice.put(f"/api/qr/{row_of(sql, path)}/update", {"data": {"ssid": "Other"}})
    after = fetched(alice, path, If_None_Match=before.headers["ETag"])
    assert decoded(pixels(after.data, "png")).text == "WIFI:T:nopass;S:Other;;"
