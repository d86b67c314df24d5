"""Logo files of QR codes and brands."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from linkmgr.qr import logos
from tests.conftest import Client


def image(mode: str = "RGB", size: tuple[int, int] = (200, 100), form: str = "PNG", **options: Any) -> bytes:
    written = BytesIO()
    Image.new(mode, size, options.pop("color", 0)).save(written, form, **options)
    return written.getvalue()


def noise() -> bytes:
    written = BytesIO()
    Image.frombytes("L", (9, 9), bytes(255 * (i * i % 5 % 2) for i in range(81))).resize((300, 300), 0).save(
        written, "PNG"
    )
    return written.getvalue()


LOGOS: dict[str, Callable[[], bytes]] = {
    "noise": noise,
    "plain": lambda: image("RGB", (1000, 1000), color=(200, 0, 0)),
    "clear": lambda: image("RGBA", (64, 64)),
    "wide": lambda: image("L", (800, 8)),
}


def folder(client: Client) -> Path:
    path = Path(client.http.application.extensions["linkmgr_settings"].data_dir) / logos.FOLDER
    path.mkdir(exist_ok=True)
    return path


def put(client: Client, name: str, data: bytes) -> str:
    (folder(client) / name).write_bytes(data)
    return name


def logo_file(client: Client, name: str) -> str:
    """Return the file name of one of LOGOS."""
    return put(client, f"{name}.png", LOGOS[name]())
