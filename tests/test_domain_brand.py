"""The name, logo and color that a branded domain carries instead of those of the operator."""

import re
from io import BytesIO

import pytest
from flask import Flask
from PIL import Image

from tests.conftest import Client
from tests.support.brands import BRANDED, fetch, has_brand
from tests.support.codes import TEXT
from tests.support.factories import Sql
from tests.support.logos import image, put

OWN = {"brandname": "Bäckerei <Ost>", "brandlogo": "bakery.png", "brandcolor": "#7c2d12"}


@pytest.fixture
def domain_id(alice: Client, public_pages: list[str], sql: Sql) -> int:
    """A branded domain with a name, a logo and a color."""
    put(alice, "bakery.png", image("RGB", (600, 300), color=(124, 45, 18)))
    domain_id = int(sql("SELECT id FROM domains")[0]["id"])
    assert alice.put(f"/api/domain/{domain_id}/update", OWN).status_code == 200
    return domain_id


def test_the_pages_of_a_domain_show_its_own_brand(
    ours: Flask, domain_id: int, public_pages: list[str], alice: Client
) -> None:
    campaign = alice.post("/api/campaign/add", {"name": "Sale", "slug": "sale", "public": True}).get_json()["id"]
    for path in (*public_pages, "/", f"/u/alice/sale-{campaign}"):
        page = fetch(ours, path, BRANDED).text
        title = re.findall("<title>(.*?)</title>", page)[0]
        assert title.endswith(" · Bäckerei &lt;Ost&gt;"), path
        assert "<span>Bäckerei &lt;Ost&gt;</span>" in page
        assert re.findall(r'<link rel="icon" href="(/static/brand/logo\?v=[0-9a-f]{8})">', page)
        assert '<link rel="stylesheet" href="/static/brand/accent.css?v=7c2d12">' in page
        assert not re.search(r"linkmgr|Acme|icon\.svg|Imprint|127\.0\.0\.1", page), path
    assert f'<a class="button quiet" href="/">Go to {BRANDED}</a>' in fetch(ours, "/gone", BRANDED).text
    assert has_brand(fetch(ours, "/gone").text)


def test_the_files_of_a_brand_are_those_of_the_requested_host(ours: Flask, domain_id: int) -> None:
    logo = fetch(ours, "/static/brand/logo", BRANDED)
    assert (logo.status_code, logo.mimetype) == (200, "image/png")
    with Image.open(BytesIO(logo.data)) as opened:
        assert opened.size == (320, 160)  # encoded anew
    assert fetch(ours, "/favicon.ico", BRANDED).data == logo.data
    style = fetch(ours, "/static/brand/accent.css", BRANDED)
    assert "--accent: #7c2d12;" in style.text
    assert fetch(ours, "/static/brand/logo").data != logo.data
    assert fetch(ours, "/static/brand/accent.css").text != style.text


def test_each_part_of_a_brand_can_be_set_and_removed(ours: Flask, domain_id: int, alice: Client) -> None:
    path = f"/api/domain/{domain_id}"
    record = alice.get(path).get_json()["data"]
    assert {name: record[name] for name in OWN} == OWN
    assert alice.get("/api/domains").get_json()["data"]["domains"] == [record]
    updated = alice.put(f"{path}/update", {"brandlogo": "", "brandname": ""}).get_json()["data"]
    assert updated == record | {"brandlogo": "", "brandname": "", "updated": updated["updated"]}
    page = fetch(ours, "/gone", BRANDED).text
    assert f"<span>{BRANDED}</span>" in page
    assert '<link rel="icon" href="data:,">' in page
    assert "accent.css" in page
    assert fetch(ours, "/static/brand/logo", BRANDED).status_code == 404
    alice.put(f"{path}/update", {"brandcolor": "", "brandname": "Ost"})
    assert "accent.css" not in fetch(ours, "/gone", BRANDED).text
    assert fetch(ours, "/static/brand/accent.css", BRANDED).status_code == 404


def test_an_update_with_the_same_logo_keeps_the_image(alice: Client, domain_id: int, sql: Sql) -> None:
    before = sql("SELECT logo_digest FROM domains")
    put(alice, "bakery.png", image("RGB", (50, 50)))
    alice.put(f"/api/domain/{domain_id}/update", {"brandlogo": "bakery.png", "brandname": "Other"})
    assert sql("SELECT logo_digest FROM domains") == before


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (
            {"brandcolor": "#ffee00"},
            "brandcolor must be darker: on light pages, #ffee00 has a contrast of 1.1 to 1 and ",
        ),
        ({"brandlogo": "missing.png"}, "Logo not found."),
        ({"brandlogo": "http://127.0.0.1/logo.png"}, "Fetching from 127.0.0.1 is not allowed."),
        ({"brandlogo": "text.png"}, "logo must be a PNG or JPEG image of at most 4 megapixels and 1 MiB."),
    ],
)
def test_a_bad_part_of_a_brand_is_refused(
    *, alice: Client, domain_id: int, sql: Sql, sent: dict[str, str], message: str
) -> None:
    put(alice, "text.png", b"no image")
    before = sql("SELECT * FROM domains")
    for answer in (
        alice.put(f"/api/domain/{domain_id}/update", sent),
        alice.post("/api/domain/add", {"domain": "https://other.example.org"} | sent),
    ):
        assert answer.status_code == 400
        assert answer.get_json()["message"].startswith(message)
    assert sql("SELECT * FROM domains") == before


def test_a_brand_costs_redirects_no_statement(ours: Flask, domain_id: int, alice: Client, executed: list[str]) -> None:
    alice.add("/api/url/add", {"url": "https://example.com/", "custom": "plain", "domain": BRANDED})
    for path, readings in (("/plain", 0), ("/gone", 1)):
        executed.clear()
        fetch(ours, path, BRANDED)
        assert sum("brandname" in statement for statement in executed) == readings


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("file:///etc/passwd", "must be a URL that begins with http:// or https://."),
        ("https://user:secret@example.com/a.png", "must not contain a user name or password."),
    ],
)
def test_the_message_about_an_invalid_url_names_the_member(alice: Client, url: str, problem: str) -> None:
    qr_id = alice.add("/api/qr/add", TEXT)
    for answer in (
        alice.post("/api/qr/add", TEXT | {"logo": url}),
        alice.put(f"/api/qr/{qr_id}/update", TEXT | {"logo": url}),
    ):
        assert (answer.status_code, answer.get_json()["message"]) == (400, f"logo {problem}")
    answer = alice.post("/api/domain/add", {"domain": "https://go.example.net", "brandlogo": url})
    assert (answer.status_code, answer.get_json()["message"]) == (400, f"brandlogo {problem}")
