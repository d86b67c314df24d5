"""Bounds of an import while it runs: rows that wait in the database, and memory."""

import io
import secrets
import tracemalloc
import zipfile

import pytest

from linkmgr.features.imports.account import reading
from linkmgr.features.imports.rows import ReadError


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_that_unpacks_without_a_bound_is_refused(method: int) -> None:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as file:
        file.writestr("manifest.json", "{}")
        file.writestr("links.jsonl", bytes(100 << 20), method)
        file.writestr("padding", secrets.token_bytes(1 << 20))
    output.seek(0)
    tracemalloc.start()
    try:
        with pytest.raises(ReadError, match=r"^links\.jsonl in this zip cannot be read"):
            list(reading.read(output))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
