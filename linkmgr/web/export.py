"""Streamed downloads: CSV, JSON, JSON lines, or a zip of JSON lines.

Each request occupies a thread until its client has everything, so their number is limited, and a user has one at a time
in each process. The worker closes connections that read more slowly than 20 KiB/s.
"""

import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from itertools import chain
from typing import Any

import orjson
from flask import Response, request, stream_with_context

from linkmgr.request.slots import Slots
from linkmgr.web import csv

Row = dict[str, Any]
MAX_CONCURRENT = 2  # of a worker's 4 threads
FORMATS = {"csv": csv.MIMETYPE, "json": "application/json", "jsonl": "application/jsonl"}
# The first one is sent without a preference.
_ACCEPTED = {"application/json": "json"} | {mimetype: form for form, mimetype in FORMATS.items()}
_ACCEPTED |= {"application/x-ndjson": "jsonl"}
_BLOCK = 64 << 10  # bytes of a zip that are collected before they are sent
_slots = Slots(MAX_CONCURRENT, "export_busy", "own_export_busy")


def preferred() -> str:
    """Return the format that the Accept header prefers. Without a preference it is JSON."""
    csv.vary_by_accept()
    return _ACCEPTED[request.accept_mimetypes.best_match(list(_ACCEPTED)) or "application/json"]


def encode(form: str, columns: dict[str, Callable[[Row], Any]], batches: Iterable[list[Row]]) -> Generator[bytes]:
    """Encode batches of rows. `columns` are those of a CSV, with their values."""
    if form == "csv":
        yield csv.lines([[*columns]])
        for batch in batches:
            yield csv.lines([value(row) for value in columns.values()] for row in batch)
        return
    if form == "jsonl":
        for batch in batches:
            yield json_lines(batch)
        return
    separator = b'{"error":0,"data":['
    for batch in batches:
        yield separator + orjson.dumps(batch)[1:-1]
        separator = b","
    yield b"]}" if separator == b"," else separator + b"]}"


def json_lines(batch: Iterable[Row]) -> bytes:
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in batch)


class _Sink(bytearray):
    """A file in memory. It cannot seek, so that zipfile writes no header twice."""

    def write(self, block: bytes) -> int:
        self.extend(block)
        return len(block)

    def flush(self) -> None:
        pass


def zipped(files: Iterable[tuple[str, Iterable[bytes]]]) -> Generator[bytes]:
    """Yield the bytes of a zip of these files."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=5) as archive:  # type: ignore[call-overload]
        for name, blocks in files:
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as file:
                for block in blocks:
                    file.write(block)
                    if len(sink) >= _BLOCK:
                        yield bytes(sink)
                        sink.clear()
    yield bytes(sink)


def streamed(batches: Iterable[list[Row]]) -> Response:
    """Stream `data`, a list that is too long for memory. Errors are handled as in downloads."""
    chunks = encode("json", {}, batches)
    return Response(stream_with_context(chain([next(chunks)], chunks)), mimetype="application/json")


def download(user_id: int, chunks: Generator[bytes], mimetype: str, name: str) -> Response:
    """Stream chunks to a user as a file. An error before the first chunk becomes an ordinary error response. A later
    error closes the connection, so the client sees an incomplete response. If the client disconnects, the generator
    is closed."""
    with ExitStack() as stack:
        stack.enter_context(_slots.hold(user_id))
        stack.enter_context(closing(chunks))
        first = next(chunks, b"")
        work = stack.pop_all()
    response = Response(stream_with_context(_stream(first, chunks, work)), mimetype=mimetype)
    if mimetype == csv.MIMETYPE:
        response.content_type = csv.CONTENT_TYPE
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.call_on_close(work.close)
    return response


def _stream(first: bytes, others: Iterator[bytes], work: ExitStack) -> Iterator[bytes]:
    with work:
        yield first
        yield from others
