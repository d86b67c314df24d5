"""Pixels on interstitial pages, and the frame that loads them."""

import html
import re
from collections.abc import Callable

import pytest
from werkzeug.test import TestResponse

from linkmgr.public import pixel_tags
from linkmgr.schemas.pixels import TYPES
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.interstitials import TARGET, Show, overlay, policy, refresh


def loaded(answer: TestResponse) -> list[dict[str, str]]:
    return [
        {name: html.unescape(value) for name, value in re.findall(r'data-([a-z]+)="(.*?)"', element)}
        for element in re.findall(r"<span hidden (.+?)>", answer.text)
    ]


def test_every_type_of_pixel_has_its_vendor() -> None:
    assert set(pixel_tags.VENDORS) == set(TYPES)


@pytest.fixture
def fire(show: Show) -> Callable[..., TestResponse]:
    """Return a function that opens the frame with these pixels."""
    return lambda *pixels: show(pixels=pixels, path="/pixels")


PIXEL = "fbpixel", "12"


@pytest.mark.parametrize("type_", ["direct", "splash", "frame", "overlay"])
def test_pages_of_every_kind_frame_their_pixels_and_load_nothing_from_vendors(
    show: Show, alice: Client, sql: Sql, type_: str
) -> None:
    ids = {"overlay_id": overlay(sql, alice.id, "message")} if type_ == "overlay" else {}
    answer = show(type_, pixels=[PIXEL], **ids)
    [frame] = re.findall('<iframe class="pixel" (.+?)>', answer.text)
    assert re.match('src="/visited[0-9]+/pixels" sandbox="allow-scripts"', frame)
    assert "facebook" not in answer.text + str(answer.headers)
    [nonce] = policy(answer)["script-src"]
    assert nonce.startswith("'nonce-")
    assert policy(answer)["frame-src"] == (["http:", "https:"] if type_ in ("frame", "overlay") else ["'self'"])


@pytest.mark.parametrize("type_", ["splash", "frame"])
def test_a_page_without_pixels_has_no_frame_for_them(show: Show, type_: str) -> None:
    answer = show(type_)
    assert "/pixels" not in answer.text
    assert policy(answer)["frame-src"] == (["'none'"] if type_ == "splash" else ["http:", "https:"])


@pytest.mark.parametrize("type_", TYPES)
def test_a_pixel_of_every_type_is_loaded_without_an_origin(fire: Callable[..., TestResponse], type_: str) -> None:
    answer = fire((type_, "AB/c:1"))
    script = pixel_tags.pixel(type_, "AB/c:1").script
    assert loaded(answer) == [{"pixel": type_, "tag": "AB/c:1", "script": script}]
    assert "/".join(script.split("/", 3)[:3]) in policy(answer)["script-src"]
    assert "AB/c:1" not in script
    assert policy(answer)["sandbox"] == ["allow-scripts"]
    assert policy(answer)["frame-ancestors"] == ["'self'"]
    assert policy(answer)["default-src"] == policy(answer)["form-action"] == policy(answer)["base-uri"] == ["'none'"]
    assert answer.headers["Cache-Control"] == "no-store"


def test_without_scripts_the_visitor_is_redirected(show: Show) -> None:
    assert refresh(show(pixels=[PIXEL])) == (1, TARGET)


def test_without_scripts_images_are_loaded(fire: Callable[..., TestResponse]) -> None:
    answer = fire(PIXEL, ("gtmpixel", "GTM-1"))
    [noscript, frame] = re.findall(r'<(?:img|iframe) src="(.+?)"', answer.text)
    assert html.unescape(noscript) == "https://www.facebook.com/tr?id=12&ev=PageView&noscript=1"
    assert frame == "https://www.googletagmanager.com/ns.html?id=GTM-1"
    assert "https://www.facebook.com" in policy(answer)["img-src"]
    assert policy(answer)["frame-src"] == ["https://www.googletagmanager.com"]


def test_a_page_of_pixels_allows_only_their_vendors(fire: Callable[..., TestResponse]) -> None:
    given = policy(fire(("quorapixel", "1")))
    assert given["script-src"][1:] == ["https://a.quora.com"]
    assert given["connect-src"] == ["https://q.quora.com"]
    assert given["img-src"] == ["https://q.quora.com"]
    assert given["frame-src"] == ["'none'"]


@pytest.mark.parametrize(
    ("type_", "tag", "address"),
    [
        ("adwordspixel", "AW-123/lab-el_1", "https://www.googletagmanager.com/gtag/js?id=AW-123"),
        ("adrollpixel", "ADV:PIX", "https://s.adroll.com/j/ADV/roundtrip.js"),
        ("gapixel", "../x", "https://www.googletagmanager.com/gtag/js?id=..%2Fx"),
        ("adrollpixel", "..", "https://s.adroll.com/j/../roundtrip.js"),
    ],
)
def test_tags_of_two_parts_are_split(type_: str, tag: str, address: str) -> None:
    assert pixel_tags.pixel(type_, tag).script == address
