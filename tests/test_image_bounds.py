"""Images of QR codes and avatars under load and in caches: rendered one at a time, and only when they changed."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.pages import avatar
from linkmgr.qr import drawing
from linkmgr.qr import image as qr_image
from linkmgr.qr.image import render
from linkmgr.repository import qr
from tests.conftest import Client
from tests.support.codes import add_code, clear_cache, decoded, fetched, pixels, row_of
from tests.support.drawing import busy
from tests.support.factories import Sql
from tests.support.logos import logo_file
from tests.support.targets import wait_until


def test_one_image_is_rendered_at_a_time_and_one_request_waits(
    app: Flask, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begun, ended = add_code(alice), threading.Semaphore(0), threading.Event()

    def slowly(picture: qr_image.ImageSpec, logo: bytes | None) -> bytes:
        begun.release()
        ended.wait(10)
        return render(picture, logo)

    def ask(size: int) -> TestResponse:
        return app.test_client().get(f"{path}?size={size}", headers={"Accept": "application/json"})

    monkeypatch.setattr(qr_image, "render", slowly)
    monkeypatch.setattr(drawing, "_WAIT_SECONDS", 60)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, 200)
        begun.acquire()
        second = pool.submit(ask, 210)  # the same image
        wait_until(lambda: bool(drawing._waiting._holders))
        refused = ask(1000)
        ended.set()
    assert [each.result().status_code for each in (first, second)] == [200, 200]
    assert (refused.status_code, refused.get_json()["code"], refused.headers["Retry-After"]) == (503, "image_busy", "2")
    assert not begun.acquire(blocking=False)
    assert ask(1000).status_code == 200


def is_busy(answer: TestResponse) -> bool:
    return (answer.status_code, answer.headers.get("Retry-After")) == (503, "2")


def test_codes_are_computed_one_at_a_time_too(alice: Client) -> None:
    path = add_code(alice)
    qr_image._code.cache_clear()
    with busy():
        assert is_busy(fetched(alice, path))
    assert qr_image._code.cache_info().currsize == 0


def test_avatars_are_drawn_one_at_a_time_too(alice: Client) -> None:
    avatar._render.cache_clear()
    with busy():
        assert is_busy(fetched(alice, "/avatar/alice.png"))


@pytest.mark.parametrize("query", ["", "?format=svg", "?size=100"])
def test_an_unchanged_image_is_neither_rendered_nor_sent_again(
    alice: Client, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    path = add_code(alice, logo=logo_file(alice, "noise")) + query
    first = fetched(alice, path)
    tag = first.headers["ETag"]
    assert tag.startswith('"')
    assert first.headers["Cache-Control"] == "no-cache"
    monkeypatch.setattr(qr_image, "render", None)
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
