import os
import struct
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from PIL import Image
from werkzeug.test import TestResponse

from linkmgr.core.outbound import fetch
from linkmgr.qr import logos
from tests.conftest import BASE_URL, Client
from tests.support import foreign
from tests.support.codes import TEXT
from tests.support.factories import Sql
from tests.support.logos import folder, image, logo_file, noise, put

MISSING = "Logo not found. Use a URL, or the name of a file in the folder 'logos' of the service."
UNUSABLE = "logo must be a PNG or JPEG image of at most 4 megapixels and 1 MiB."


def stored_logo(sql: Sql) -> Image.Image:
    with Image.open(BytesIO(sql("SELECT image AS logo FROM logos")[0]["logo"])) as opened:
        assert opened.format == "PNG"
        opened.load()
        return opened


@pytest.mark.parametrize(
    "data",
    [
        image("RGB"),
        image("RGBA"),
        image("L"),
        image("LA"),
        image("P"),
        image("P", transparency=bytes(range(256))),
        image("1"),
        image("I;16", color=40000),
        image("RGB", form="JPEG"),
        image("L", form="JPEG"),
        image("CMYK", form="JPEG"),
        image("RGB", form="JPEG", progressive=True),
        image("RGB", form="MPO", save_all=True, append_images=[Image.new("RGB", (50, 50))]),
        image("RGB", save_all=True, append_images=[Image.new("RGB", (200, 100), 255)]),
        image("RGB", (2000, 2000)),
    ],
)
def test_png_and_jpeg_of_every_kind_become_a_small_png(alice: Client, sql: Sql, data: bytes) -> None:
    alice.add("/api/qr/add", TEXT | {"logo": put(alice, "logo", data)})
    found = stored_logo(sql)
    assert found.mode == "RGBA"
    assert max(found.size) <= logos.SIDE


def test_a_16_bit_grayscale_image_stays_grayscale(alice: Client, sql: Sql) -> None:
    alice.add("/api/qr/add", TEXT | {"logo": put(alice, "grey.png", image("I;16", color=32768))})
    assert stored_logo(sql).getpixel((0, 0)) == (128, 128, 128, 255)


def test_a_photograph_is_upright_and_loses_its_location(alice: Client, sql: Sql) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by 90 degrees
    exif[0x010E] = "the secret place"
    data = image("RGB", (200, 100), "JPEG", exif=exif, comment="secret", icc_profile=b"secret")
    alice.add("/api/qr/add", TEXT | {"logo": put(alice, "photo.jpg", data)})
    found = stored_logo(sql)
    assert found.size == (100, 200)
    assert found.info == {}


def bomb() -> bytes:
    """Return a few bytes that decode to 2.5 gigapixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 50000, 50000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(10**6)))
        + chunk(b"IEND", b"")
    )


def many_scans() -> bytes:
    """Return a JPEG whose last pass over all pixels is repeated: a minute of decoding in 1 MiB."""
    data = image("RGB", (2000, 2000), "JPEG", progressive=True)
    last, end = data.rindex(b"\xff\xda"), data.rindex(b"\xff\xd9")
    return data[:last] + data[last:end] * 20000 + data[end:]


SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        SVG,
        image(form="GIF"),
        image(form="WEBP"),
        image(form="BMP"),
        image(form="TIFF"),
        image()[:60],
        noise()[:-40],
        image(form="JPEG")[:-100],
        image(size=(2001, 2000)),
        image("L", (4_000_001, 1)),
        bomb(),
        many_scans(),
        image() + bytes(1 << 20),
    ],
)
def test_a_file_that_is_no_small_png_or_jpeg_is_rejected(alice: Client, data: bytes) -> None:
    answer = alice.post("/api/qr/add", TEXT | {"logo": put(alice, "logo.png", data)})
    assert (answer.status_code, answer.get_json()["message"]) == (400, UNUSABLE)
    assert alice.get("/api/qr").get_json()["data"]["result"] == 0


@pytest.mark.parametrize(
    "name",
    ["none.png", "../secret_key", "a/b.png", "a\\b.png", ".hidden.png", "..", "~", "/etc/passwd", "linked.png",
     "folder", "pipe", "x" * 300 + ".png", "kept.png ", "ke\tpt"],
)  # fmt: skip
def test_only_a_file_of_the_folder_itself_is_read(alice: Client, name: str) -> None:
    place = folder(alice)
    put(alice, ".hidden.png", image())
    put(alice, "kept.png", image())
    for made in ("linked.png", "folder", "pipe"):
        if not os.path.lexists(place / made):
            {
                "linked.png": lambda path: path.symlink_to(place / "kept.png"),
                "folder": Path.mkdir,
                "pipe": os.mkfifo,
            }[made](place / made)
    answer = alice.post("/api/qr/add", TEXT | {"logo": name})
    assert answer.status_code == 400
    assert answer.get_json()["message"] in (MISSING, "logo must not contain control characters.")


def test_a_logo_from_a_url_is_fetched_once_and_stored(alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def answer(request: Any) -> None:
        asked.append(request.path)
        foreign.answering(image("RGB", (500, 400), "JPEG"))(request)

    with foreign.server(answer) as port:
        foreign.publish(monkeypatch, {"logos.example.com:80": port})
        made = alice.post("/api/qr/add", TEXT | {"logo": "http://logos.example.com/a.jpg"}).get_json()
    assert asked == ["/a.jpg"]
    assert stored_logo(sql).size == (320, 256)
    assert alice.http.get(made["link"].removeprefix(BASE_URL)).status_code == 200
    assert len(asked) == 1


def test_a_logo_that_cannot_be_fetched_is_ignored_with_a_warning(
    alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    with foreign.server(foreign.answering(b"", status=404)) as port:
        foreign.publish(monkeypatch, {"logos.example.com:80": port})
        url, private = "http://logos.example.com/a.png", "http://127.0.0.1/a.png"
        gone = "logos.example.com responded with status 404 instead of 200. At most 3 redirects are followed."
        refused = "Fetching from 127.0.0.1 is not allowed. Use a public host, on port 80 or 443."
        answer = alice.post("/api/qr/add", TEXT | {"logo": url}).get_json()
        assert answer["warnings"] == [f"The logo was ignored. {gone}"]
        many = alice.post("/api/qr/bulk", {"qrs": [TEXT, TEXT | {"logo": url}, TEXT | {"logo": private}]}).get_json()
        assert (many["created"], many["failed"]) == (3, 0)
        assert many["warnings"] == [f"qrs[{n}]: The logo was ignored. {why}" for n, why in ((1, gone), (2, refused))]
        assert sql("SELECT DISTINCT logo_hash AS logo, logo_source FROM qrs") == [{"logo": None, "logo_source": None}]
        with_logo = alice.add("/api/qr/add", TEXT | {"logo": logo_file(alice, "noise")})
        changed = alice.put(f"/api/qr/{with_logo}/update", {"data": "y", "logo": url}).get_json()
        assert changed["warnings"] == [f"The logo was ignored. {gone}"]
        assert changed["details"]["logo"] != ""


def test_an_update_keeps_replaces_and_removes_the_logo(alice: Client, sql: Sql) -> None:
    qr_id = alice.add("/api/qr/add", TEXT | {"logo": logo_file(alice, "noise")})
    first = stored_logo(sql)
    update = f"/api/qr/{qr_id}/update"
    for unsent in ({}, {"logo": None}):
        alice.put(update, {"data": "y"} | unsent)
        assert stored_logo(sql) == first
    alice.put(update, {"data": "y", "logo": logo_file(alice, "wide")})
    assert stored_logo(sql).size == (320, 3)
    assert alice.put(update, {"data": "y", "logo": "none.png"}).status_code == 400
    assert stored_logo(sql).size == (320, 3)
    alice.put(update, {"data": "y", "logo": ""})
    assert sql("SELECT logo_hash FROM qrs") == [{"logo_hash": None}]


def test_the_logo_is_read_as_it_was_sent_and_not_fetched_again(
    alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(request: Any) -> None:
        asked.append(request.path)
        foreign.answering(image("RGB", (500, 400)))(request)

    with foreign.server(answer) as port:
        foreign.publish(monkeypatch, {"logos.example.com:80": port})
        path = f"/api/qr/{alice.add('/api/qr/add', TEXT | {'logo': 'http://logos.example.com/a.png'})}"
        shown = alice.get(path).get_json()["details"]
        assert shown["logo"] == "http://logos.example.com/a.png"
        assert alice.put(f"{path}/update", shown | {"data": "new"}).get_json()["details"]["data"] == "new"
        assert asked == ["/a.png"]
        assert stored_logo(sql).size == (320, 256)
        other = {"data": "y", "logo": "http://logos.example.com/b.png"}
        assert alice.put(f"{path}/update", other).get_json()["details"]["logo"] == other["logo"]
        assert asked == ["/a.png", "/b.png"]


def test_a_code_without_a_logo_can_be_sent_back(alice: Client, sql: Sql) -> None:
    path = f"/api/qr/{alice.add('/api/qr/add', TEXT | {'logo': logo_file(alice, 'noise')})}"
    shown = alice.get(path).get_json()["details"]
    removed = alice.put(f"{path}/update", shown | {"logo": ""}).get_json()["details"]
    assert removed == shown | {"logo": "", "updated": removed["updated"]}
    assert alice.put(f"{path}/update", removed).get_json()["details"] == removed
    assert sql("SELECT logo_hash, logo_source FROM qrs") == [{"logo_hash": None, "logo_source": None}]


def test_slow_logo_servers_do_not_block_the_service(
    app: Flask, alice: Client, bob: Client, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limit the concurrent fetches of a process; a further request gets a 503 with Retry-After."""
    begun, ended = threading.Semaphore(0), threading.Event()

    def silent(_: BaseHTTPRequestHandler) -> None:
        begun.release()
        ended.wait(10)

    def ask(client: Client) -> TestResponse:
        members = TEXT | {"logo": "http://logos.example.com/a.png"}
        return Client(app.test_client(), client.key).post("/api/qr/add", members)

    monkeypatch.setattr(fetch, "DEADLINE", 2.0)
    with foreign.server(silent) as port, ThreadPoolExecutor(2) as pool:
        foreign.publish(monkeypatch, {"logos.example.com:80": port})
        waiting = [pool.submit(ask, client) for client in (alice, bob)]
        for _ in waiting:
            begun.acquire()
        refused = ask(admin)
        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "2"
        assert (
            refused.get_json()["message"] == "Too many requests that take long are in progress. Try again in 2 seconds."
        )
        assert not any(each.done() for each in waiting)
        ended.set()
        assert all("warnings" in each.result().get_json() for each in waiting)
        assert ask(admin).status_code == 200, "the limit of fetches is free again"
