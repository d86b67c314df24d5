"""Zips that are damaged inside their files: each is refused with a sentence."""

import io
import zipfile
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkmgr.features.imports.account import reading
from linkmgr.features.imports.rows import ReadError

LINES = b"".join(b'{"id": %d, "url": "https://example.com/%d"}\n' % (number, number**5) for number in range(200))
METHODS = {
    "stored": zipfile.ZIP_STORED, "deflate": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA,
}  # fmt: skip


def zipped(method: int) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", method) as file:
        file.writestr("manifest.json", "{}")
        file.writestr("links.jsonl", LINES)
    return output.getvalue()


def data_damaged(content: bytes) -> bytes:
    start = content.index(b"links.jsonl") + len("links.jsonl")
    return content[: start + 20] + b"\xff" * 400 + content[start + 420 :]


def name_damaged(content: bytes) -> bytes:
    """Return the zip with a name before the data that is not the UTF-8 that its flag promises."""
    start = content.index(b"links.jsonl")
    header = bytearray(content[start - 30 : start])
    header[7] |= 0x08
    return content[: start - 30] + bytes(header) + b"\xff" + content[start + 1 :]


DAMAGES: dict[str, Any] = {"data": data_damaged, "name": name_damaged}


@pytest.mark.parametrize("method", ["deflate", "bzip2", "lzma"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_in_a_zip_is_refused(method: str, damage: str) -> None:
    content = io.BytesIO(DAMAGES[damage](zipped(METHODS[method])))
    with pytest.raises(ReadError, match=r"^links.jsonl in this zip cannot be read. Export the account again.$"):
        list(reading.read(content))


@settings(max_examples=100)
@given(
    method=st.sampled_from([*METHODS.values()]),
    changes=st.dictionaries(st.integers(0, 1 << 16), st.integers(0, 255), min_size=1, max_size=4),
    near=st.sampled_from([60, 140, 1 << 16]),
)
def test_any_damage_of_a_zip_is_read_or_refused(method: int, changes: dict[int, int], near: int) -> None:
    content = bytearray(zipped(method))
    for place, byte in changes.items():
        content[(len(content) // 2 - place) % min(near, len(content)) * (-1 if place % 2 else 1)] = byte
    for read in (lambda file: list(reading.read(file)), lambda file: reading.first_rows(file, 10)):
        with suppress(ReadError):
            read(io.BufferedReader(io.BytesIO(bytes(content))))
