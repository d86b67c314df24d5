"""The editor of QR codes in the console."""

import base64
import re
from io import BytesIO
from typing import Any

import resvg_py
import zxingcpp
from PIL import Image

from tests.conftest import Client

NEW = "/console/qrs/new"


def as_form(type_: str, data: Any, **others: Any) -> dict[str, Any]:
    members = data if isinstance(data, dict) else {type_: data}
    return {"type": type_} | {f"data.{type_}.{name}": text for name, text in members.items()} | others


def preview(page: str) -> zxingcpp.Barcode:
    """Return the code of the preview, as an independent program draws and reads it."""
    uri = re.search('src="data:image/svg[+]xml;base64,([^"]+)"', page)
    assert uri
    drawn = bytes(resvg_py.svg_to_bytes(svg_string=base64.b64decode(uri[1]).decode(), skip_system_fonts=True))
    with Image.open(BytesIO(drawn)) as opened:
        [code] = zxingcpp.read_barcodes(opened.convert("RGB"))
    return code


def details(client: Client, path: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/qr/{path.rsplit('/', 1)[1]}").get_json()["details"]
    return found
