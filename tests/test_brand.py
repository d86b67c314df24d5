"""Name, logo, color and footer of the operator on our own host, and their absence on branded domains."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask

from linkmgr.core.settings import InvalidSetting
from linkmgr.core.web import session_store
from tests.conftest import Client
from tests.support.brands import BRANDED, fetch, has_brand
from tests.support.pages import PASSWORD, contrast


def test_every_page_of_our_own_host_has_the_brand(ours: Flask, alice: Client, public_pages: list[str]) -> None:
    for path in (*public_pages, "/login", "/login/spent", "/api/docs", "/api/docs/changes"):
        assert has_brand(fetch(ours, path).text), path
    browser = ours.test_client()
    browser.post("/login", data={"email": "alice@example.com", "password": PASSWORD})
    assert has_brand(browser.get("/account").text)


def test_a_bio_page_ends_with_the_brand(ours: Flask, alice: Client) -> None:
    alice.add("/api/bio/add", {"name": "Alice", "alias": "alice"})
    footer = fetch(ours, "/alice").text.split("<footer>")[1]
    assert "Acme &lt;Links&gt;</a>" in footer
    assert "/static/brand/logo?v=" in footer
    assert "https://example.com/imprint" in footer


def test_a_branded_domain_shows_nothing_of_ours(
    ours: Flask, public_pages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (*public_pages, "/"):
        page = fetch(ours, path, BRANDED).text
        assert f"<span>{BRANDED}</span>" in page, path
        assert not re.search(r"linkmgr|Acme|brand/|icon\.svg|Imprint", page), path
    assert f'<a class="button quiet" href="/">Go to {BRANDED}</a>' in fetch(ours, "/gone", BRANDED).text
    icon = fetch(ours, "/favicon.ico", BRANDED)
    assert (icon.status_code, icon.data) == (204, b"")
    assert fetch(ours, "/static/brand/logo", BRANDED).status_code == 404

    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("linkmgr.public.scan.public.qr_code", fail)
    assert not re.search(r"linkmgr|Acme|icon\.svg|Imprint|branded\.invalid", fetch(ours, public_pages[3], BRANDED).text)


def test_a_bug_is_reported_with_the_brand(ours: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: bytes) -> bool:
        raise RuntimeError

    monkeypatch.setattr(session_store, "is_usable", fail)
    answer = fetch(ours, "/login/token")
    assert (answer.status_code, has_brand(answer.text)) == (500, True)


@pytest.mark.parametrize(
    ("name", "mimetype"), [("logo.png", "image/png"), ("logo.jpg", "image/jpeg"), ("logo.svg", "image/svg+xml")]
)
def test_the_logo_is_served_without_an_origin_of_its_own(
    make_app: Callable[..., Flask], app: Flask, brand_folder: Path, name: str, mimetype: str
) -> None:
    made = make_app(data_dir=str(brand_folder), logo=name)
    path = re.findall('<link rel="icon" href="(.*?)">', fetch(made, "/login").text)[0]
    for answer in (fetch(made, path), fetch(made, "/favicon.ico")):
        assert (answer.status_code, answer.mimetype) == (200, mimetype)
        assert answer.data == (brand_folder / name).read_bytes()
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "public, max-age=86400"
    again = made.test_client().get(path, headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304
    assert fetch(made, "/static/brand/accent.css").status_code == 404


@pytest.mark.parametrize("name", ["large.svg", "comments.svg", "text.png", "missing.png", "sub/logo.png"])
def test_a_logo_that_browsers_cannot_show_stops_the_start(
    make_app: Callable[..., Flask], brand_folder: Path, name: str
) -> None:
    with pytest.raises(InvalidSetting, match="LINKMGR_LOGO must be the name of a PNG, JPEG or SVG file of at most 256"):
        make_app(data_dir=str(brand_folder), logo=name)


@pytest.mark.parametrize("accent", ["#14713d", "#000000", "#B3261E", "#4355d9, #9aacff", "#14713d #ffffff"])
def test_an_accent_color_can_be_read_on_light_and_dark_pages(
    make_app: Callable[..., Flask], brand_folder: Path, accent: str
) -> None:
    style = fetch(make_app(data_dir=str(brand_folder), accent=accent), "/static/brand/accent.css")
    assert style.mimetype == "text/css"
    light, dark = (dict(re.findall("--([a-z-]+): (#[0-9a-f]{6});", part)) for part in style.text.split("@media"))
    for colors, surfaces in ((light, ("#ffffff", "#f5f6fa")), (dark, ("#171a23", "#0e1016"))):
        for surface in surfaces:
            assert contrast(colors["accent"], surface) >= 4.5
            assert contrast(colors["accent-hover"], surface) >= 4.5
        assert contrast(colors["accent"], colors["on-accent"]) >= 4.5
        assert contrast(colors["accent-hover"], colors["on-accent"]) >= 4.5
    assert light["accent"] == accent[:7].lower()


@pytest.mark.parametrize(
    ("accent", "message"),
    [
        ("#ffee00", "LINKMGR_ACCENT must be darker: on light pages, #ffee00 has a contrast of 1.1 to 1 and needs 4.5 "),
        ("#4355d9 #14713d", "LINKMGR_ACCENT must be lighter: on dark pages, #14713d has a contrast of 2.9 to 1 and "),
    ],
)
def test_an_accent_color_that_is_hard_to_read_stops_the_start(
    make_app: Callable[..., Flask], brand_folder: Path, accent: str, message: str
) -> None:
    with pytest.raises(InvalidSetting, match=re.escape(message)):
        make_app(data_dir=str(brand_folder), accent=accent)
