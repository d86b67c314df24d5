"""A PDF file with one page, the image of a QR code as shapes, so that it prints sharply in any size."""

import zlib
from collections.abc import Iterable
from io import BytesIO

from PIL import Image

_POINTS = 0.75  # of a pixel: there are 72 to the inch, and 96 pixels as in browsers


def draw(
    *,
    width: int,
    margin: int,
    scale: int,
    colors: tuple[list[int], list[int]],
    bars: Iterable[tuple[int, int, int]],
    logo: tuple[bytes, float, float] | None,
) -> bytes:
    """Return the file. All lengths are in modules, apart from `scale`, the pixels of a module.

    `colors` are those of the code and of the background, `bars` are x, y and length of runs of dark modules, and `logo`
    is a PNG with its start and its side.
    """
    module = scale * _POINTS
    front, back = (" ".join(f"{part / 255:.4f}" for part in color) for color in colors)
    # The y axis of PDF points up.
    shapes = [f"{module} 0 0 {-module} 0 {width * module} cm", f"{back} rg 0 0 {width} {width} re f", f"{front} rg"]
    shapes += [f"{x + margin} {y + margin} {length} 1 re" for x, y, length in bars]
    shapes.append("f")
    images = []
    if logo:
        png, start, side = logo
        image = Image.open(BytesIO(png)).convert("RGBA")
        longer = max(image.size)
        across, down = image.width / longer * side, image.height / longer * side
        x, y = (margin + start + (side - length) / 2 for length in (across, down))
        shapes.append(f"{across:.4f} 0 0 {-down:.4f} {x:.4f} {y + down:.4f} cm /Logo Do")
        images = [_image(image.convert("RGB"), "RGB", " /SMask 6 0 R"), _image(image.getchannel("A"), "Gray")]
    page = (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width * module} {width * module}] /Contents 4 0 R "
        f"/Resources << {'/XObject << /Logo 5 0 R >> ' if logo else ''}>> >>"
    )
    catalog, pages = b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
    return _file([catalog, pages, page.encode(), _stream("", "\n".join(shapes).encode()), *images])


def _image(image: Image.Image, space: str, mask: str = "") -> bytes:
    entries = (
        f"/Type /XObject /Subtype /Image /Width {image.width} /Height {image.height} /ColorSpace /Device{space} "
        f"/BitsPerComponent 8{mask} "
    )
    return _stream(entries, image.tobytes())


def _stream(entries: str, content: bytes) -> bytes:
    packed = zlib.compress(content, 9)
    return f"<< {entries}/Filter /FlateDecode /Length {len(packed)} >>\nstream\n".encode() + packed + b"\nendstream"


def _file(objects: list[bytes]) -> bytes:
    """Return the file with these objects, which are numbered from 1. The first is the catalog."""
    content, positions = b"%PDF-1.4\n%\xff\xff\xff\xff\n", []
    for number, body in enumerate(objects, 1):
        positions.append(len(content))
        content += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % position for position in positions)
    size = len(objects) + 1
    return content + (
        b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (size, table, size, len(content))
    )
