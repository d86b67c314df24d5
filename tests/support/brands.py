"""A service with a brand, and its public pages on its own host and on a branded domain."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from flask import Flask
from PIL import Image
from werkzeug.test import TestResponse

if TYPE_CHECKING:
    from tests.conftest import Client

BRANDED = "go.example.org"
SVG = '<?xml version="1.0"?>\n<!-- drawn -->\n<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
FOOTER = "Imprint: https://example.com/imprint & <more>"


@pytest.fixture(scope="session")
def brand_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("brand")
    Image.new("RGB", (90, 30), "#14532d").save(folder / "logo.png")
    Image.new("RGB", (90, 30), "#14532d").save(folder / "logo.jpg")
    (folder / "logo.svg").write_text(SVG)
    (folder / "large.svg").write_text(SVG + " " * 256 * 1024)
    (folder / "comments.svg").write_text("<!-- -->" * 10_000)
    (folder / "text.png").write_text("no image")
    return folder


@pytest.fixture(scope="session")
def ours(make_app: Callable[..., Flask], app: Flask, brand_folder: Path) -> Flask:
    """The service with a brand, on the database of the tests."""
    brand = {"name": "Acme <Links>", "logo": "logo.png", "accent": "#14713d", "footer": FOOTER}
    return make_app(data_dir=str(brand_folder), secret_key=app.config["SECRET_KEY"], **brand)


@pytest.fixture
def public_pages(alice: "Client") -> list[str]:
    """Paths of public pages that exist on our own host and on alice's branded domain."""
    alice.add("/api/domain/add", {"domain": f"https://{BRANDED}"})
    page = alice.add("/api/splash/add", {"name": "A", "title": "B", "message": "C", "counter": 60})
    for domain in ({}, {"domain": BRANDED}):
        links = {"gone": {"expiry": "2020-01-01"}, "locked": {"password": "abc12345"}, "splashed": {"type": str(page)}}
        for alias, members in links.items():
            alice.add("/api/url/add", {"url": "https://example.com/", "custom": alias} | members | domain)
    code = alice.post("/api/qr/add", {"type": "text", "data": "Hello"}).get_json()["link"].rpartition("/")[2]
    return ["/gone", "/locked", "/splashed", f"/q/{code}", "/nothing", "/no/thing"]


def fetch(app: Flask, path: str, host: str = "127.0.0.1:5000") -> TestResponse:
    return app.test_client().get(path, headers={"Host": host})


def has_brand(page: str) -> bool:
    title = re.findall("<title>(.*?)</title>", page)[0]
    assert title.endswith(" · Acme &lt;Links&gt;"), title
    assert re.findall(r'<link rel="icon" href="(/static/brand/logo\?v=[0-9a-f]{8})">', page)
    assert "<span>Acme &lt;Links&gt;</span>" in page
    assert re.findall(r'<link rel="stylesheet" href="/static/brand/accent.css\?v=[0-9a-f]{8}">', page)
    assert 'Imprint: <a href="https://example.com/imprint" rel="noopener">' in page
    assert "&amp; &lt;more&gt;</small></footer>" in page
    return "linkmgr" not in re.sub("<main.*</main>", "", page, flags=re.DOTALL)
