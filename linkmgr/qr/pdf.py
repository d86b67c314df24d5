import zlib

from PIL import Image


def page(side: float, content: bytes, logo: Image.Image | None) -> bytes:
    """Return a file with one square page. All lengths are in points. The content can name the logo,
    an RGBA image."""
    images = []
    if logo:
        images = [_image(logo.convert("RGB"), "RGB", " /SMask 6 0 R"), _image(logo.getchannel("A"), "Gray")]
    entries = (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {side} {side}] /Contents 4 0 R "
        f"/Resources << {'/XObject << /Logo 5 0 R >> ' if logo else ''}>> >>"
    )
    catalog, pages = b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
    return _file([catalog, pages, entries.encode(), _stream("", content), *images])


def _image(image: Image.Image, space: str, mask: str = "") -> bytes:
    entries = (
        f"/Type /XObject /Subtype /Image /Width {image.width} /Height {image.height} /ColorSpace "
        f"/Device{space} /BitsPerComponent 8{mask} "
    )
    return _stream(entries, image.tobytes())


def _stream(entries: str, content: bytes) -> bytes:
    packed = zlib.compress(content, 9)
    return (
        f"<< {entries}/Filter /FlateDecode /Length {len(packed)} >>\nstream\n".encode()
        + packed
        + b"\nendstream"
    )


def _file(objects: list[bytes]) -> bytes:
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
