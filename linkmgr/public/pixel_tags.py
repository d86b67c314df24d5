"""Scripts of each type of pixel, and the hosts that the page's Content-Security-Policy must allow
for them.

static/pixels.js passes the tags to the scripts. A Tag Manager container gets no nonce, so that
custom code in it does not run on our pages; it may load only from the hosts listed in
pixel_vendors.toml.
"""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

VENDORS = tomllib.loads(Path(__file__).with_name("pixel_vendors.toml").read_text())


class Pixel(NamedTuple):
    """A user's pixel with its expanded URLs, and the hosts that it needs, by directive of the
    policy."""

    type: str
    tag: str
    script: str
    images: list[str]
    frame: str
    sources: dict[str, list[str]]


def pixel(name: str, tag: str) -> Pixel:
    first, *rest = re.split("[/:]", tag, maxsplit=1)
    number = first.upper().removeprefix("AW-")
    parts = {"tag": tag, "first": first, "rest": "".join(rest), "number": number}
    encoded = {name: quote(part, safe="") for name, part in parts.items()}
    vendor = VENDORS[name]
    images = vendor.get("images", [])
    sources = {
        "script-src": [_origin(vendor["script"]), *vendor.get("scripts", [])],
        "img-src": [*vendor["endpoints"], *map(_origin, images)],
        "connect-src": vendor["endpoints"],
        "frame-src": vendor.get("frames", []),
    }
    expanded = [image.format(**encoded) for image in images]
    script, frame = vendor["script"].format(**encoded), vendor.get("frame", "").format(**encoded)
    return Pixel(name, tag, script, expanded, frame, sources)


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def sources(directive: str, loaded: list[Pixel]) -> str:
    return " ".join(dict.fromkeys(source for pixel in loaded for source in pixel.sources[directive]))
