"""Each request occupies a thread until its client has everything, so it takes a slot of the pool.
The worker closes connections that read more slowly than 20 KiB/s."""

import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import orjson
from flask import Response, current_app, has_request_context, request, stream_with_context

from linkmgr.core.errors import AppError
from linkmgr.core.fields.query import Parameter, query_choice
from linkmgr.core.web import csv, pool
from linkmgr.core.web.responses import ok

Row = dict[str, Any]
FORMATS = {"csv": csv.MIMETYPE, "json": "application/json", "jsonl": "application/x-ndjson"}
FORMAT = Parameter("The type of the file.", selects_media=True)
BUSY = ("export_busy", "own_export_busy")  # codes of errors
# The first one is sent without a preference.
_ACCEPTED = {"application/json": "json"} | {mimetype: form for form, mimetype in FORMATS.items()}
_ACCEPTED |= {"application/jsonl": "jsonl"}
LARGE = 5 << 20  # bytes of a response that is not streamed: more than a page of a list (db/paging.py)
_BLOCK = 64 << 10  # bytes of a zip that are collected before they are sent


def preferred() -> str:
    csv.vary_by_accept()
    return _ACCEPTED[request.accept_mimetypes.best_match(list(_ACCEPTED)) or "application/json"]


def encode(
    form: str, columns: dict[str, Callable[[Row], Any]], batches: Iterable[list[Row]]
) -> Generator[bytes]:
    if form == "csv":
        yield csv.lines([[*columns]])
        for batch in batches:
            yield csv.lines([value(row) for value in columns.values()] for row in batch)
        return
    if form == "jsonl":
        for batch in batches:
            yield json_lines(batch)
        return
    opening = ok() if has_request_context() else {"error": 0}
    separator = orjson.dumps(opening)[:-1] + b',"data":['
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
    return _respond(encode("json", {}, batches), "application/json")


def download(chunks: Generator[bytes], mimetype: str, name: str) -> Response:
    response = _respond(chunks, csv.CONTENT_TYPE if mimetype == csv.MIMETYPE else mimetype)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def export(
    name: str, columns: dict[str, Callable[[Row], Any]], batches: Iterable[list[Row]], form: str | None = None
) -> Response:
    """Download rows in a form, or without one in that of the parameter `format` or of Accept."""
    form = form or query_choice("format", tuple(FORMATS)) or preferred()
    return download(encode(form, columns, batches), FORMATS[form], f"{name}.{form}")


def _respond(chunks: Generator[bytes], content_type: str) -> Response:
    """Stream chunks. An error before the first one becomes an ordinary error response. A later
    error closes the connection, so the client sees an incomplete response. If the client
    disconnects, the generator is closed."""
    pool.take(*BUSY)
    first = next(chunks, b"")
    work = pool.keep()
    work.callback(chunks.close)
    response = Response(stream_with_context(_stream(first, chunks, work)), content_type=content_type)
    response.call_on_close(work.close)
    return response


def _stream(first: bytes, others: Generator[bytes], work: ExitStack) -> Iterator[bytes]:
    with work:
        yield first
        yield from others


def with_place(response: Response) -> Response:
    """Send a large response, such as one of statistics, with a slot too."""
    try:
        pool.take(*BUSY)
    except AppError as error:
        return current_app.make_response(current_app.handle_user_exception(error))
    response.call_on_close(pool.keep().close)
    return response
