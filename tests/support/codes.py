"""QR codes: bodies, and what their images show."""

from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import pypdfium2
import resvg_py
import zxingcpp
from PIL import Image
from werkzeug.test import TestResponse

from linkmgr.public import qr as qr_pages
from tests.conftest import BASE_URL, Client
from tests.support.factories import Sql

DATA: dict[str, Any] = {
    "text": "Hello\nworld",
    "vcard": {"fname": "Ada", "lname": "Lovelace", "cell": "+44 20 7946 0000", "site": "example.com/ada"},
    "link": "https://example.com/café?q=1",
    "email": {"email": "ada@example.com", "subject": "Hi", "body": "One\nTwo"},
    "phone": "+44 (20) 7946-0000",
    "sms": {"phone": "112", "message": "Help"},
    "wifi": {"ssid": "Home; sweet", "encryption": "wpa2", "password": 'p:a"ss,w\\rd'},
}


TEXT = {"type": "text", "data": "x"}


def pixels(data: bytes, form: str) -> Image.Image:
    """Return the image as Pillow decodes it. Independent programs render the SVG and the PDF."""
    if form == "pdf":
        [page] = pypdfium2.PdfDocument(data)
        rendered: Image.Image = page.render(scale=96 / 72).to_pil()
        return rendered.convert("RGB")
    if form == "svg":
        data = bytes(resvg_py.svg_to_bytes(svg_string=data.decode(), skip_system_fonts=True))
    with Image.open(BytesIO(data)) as image:
        return image.convert("RGB")


def decoded(image: Image.Image) -> zxingcpp.Barcode:
    [found] = zxingcpp.read_barcodes(image, formats=zxingcpp.BarcodeFormats(zxingcpp.BarcodeFormat.QRCode))
    return found


def address_of(link: str) -> str:
    assert link.startswith(f"{BASE_URL}/qr/")
    return link.removeprefix(BASE_URL)


def add_code(client: Client, type_: str = "text", **sent: Any) -> str:
    """Create a code and return the path of its image."""
    answer = client.post("/api/qr/add", {"type": type_, "data": DATA[type_]} | sent)
    assert answer.status_code == 200, answer.text
    return address_of(answer.get_json()["link"])


def clear_cache() -> None:
    """Forget the rendered images."""
    qr_pages._kept.clear()


def fetched(client: Client, path: str, **headers: str) -> TestResponse:
    return client.http.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def code_of(path: str) -> str:
    return path.removeprefix("/qr/")


def row_of(sql: Sql, path: str) -> int:
    return int(sql("SELECT id FROM qrs WHERE code = %(code)s", code=code_of(path))[0]["id"])


def encoded_path(client: Client, type_: str, data: Any) -> str:
    """Create a code and return the path that its image encodes."""
    answer = client.post("/api/qr/add", {"type": type_, "data": data})
    assert answer.status_code == 200, answer.text
    return str(urlsplit(answer.get_json()["link"]).path).replace("/qr/", "/q/")
