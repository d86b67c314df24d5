"""Requests to import a file or to read a service: preview and creation."""

import io
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any, NamedTuple

from linkmgr.db import transaction
from linkmgr.db.statements import Row
from linkmgr.imports import archive, archive_errors, bodies, job, readers, stored_file
from linkmgr.imports.links import Outcome
from linkmgr.imports.rows import ImportRow, ReadError
from linkmgr.repository import import_batches, imports
from linkmgr.web import keys
from linkmgr.web.errors import AppError, not_found

SOURCES = (*readers.FILE_SOURCES, archive.SOURCE)
PREVIEW_ROWS = 10
_NO_ACCOUNT = "This is not an export of an account. Send its zip, or the CSV of its rows that failed."
_MAX_SHOWN = 300  # characters of the names of columns in a message


class Service(NamedTuple):
    source: str
    address: str
    token: str
    mapping: dict[str, str] = {}
    form: str = "service"
    columns: list[str] = []


class File(NamedTuple):
    stream: IO[bytes]
    size: int
    name: str
    source: str  # of SOURCES; empty if only the mapping names the columns
    mapping: dict[str, str]
    form: str  # csv, json, jsonl, sql or zip
    columns: list[str]


def recognize(stream: IO[bytes], size: int, name: str, source: str | None, mapping: dict[str, str]) -> File:
    """Recognize a file. `source` and `mapping` take precedence over what its first bytes suggest."""
    head = stream.read(readers.HEAD_BYTES)
    stream.seek(0)
    if archive.is_archive(head):
        _check_archive(stream)
        return File(stream, size, name, archive.SOURCE, {}, "zip", [])
    try:
        form = readers.recognize(head)
    except ReadError as error:
        raise AppError("import_unreadable", problem=error.message) from None
    if source in (None, archive.SOURCE) and not form.source and archive_errors.has_columns(form.columns):
        return File(stream, size, name, archive.SOURCE, {}, form.format, form.columns)
    if source == archive.SOURCE:
        raise AppError("import_unreadable", problem=_NO_ACCOUNT)
    columns = set(form.columns)
    if missing := [column for column in mapping.values() if column not in columns and form.format != "sql"]:
        raise AppError("invalid", problems=f"mapping names columns that the file does not have: {', '.join(missing)}")
    return File(stream, size, name, source or form.source or "", mapping or form.mapping, form.format, form.columns)


def _check_archive(stream: IO[bytes]) -> None:
    try:
        archive.preview(stream, 0)
    except ReadError as error:
        raise AppError("import_unreadable", problem=error.message) from None
    stream.seek(0)


def draft(user_id: int, import_id: int, mapping: dict[str, str]) -> File:
    """Return the file of a draft, which the console shows before the import begins."""
    details = import_batches.details(user_id, import_id)
    if details is None or details["state"] != "draft":
        raise not_found("import")
    stream: Any = io.BufferedReader(stored_file.StoredFile(user_id, import_id, details["size"]), 1 << 16)
    return recognize(stream, details["size"], "", None, mapping)


def begin(user_id: int, import_id: int, *, on_conflict: str, mapping: dict[str, str]) -> None:
    """Begin the import of a draft."""
    file = draft(user_id, import_id, mapping)
    _require_known(file)
    with transaction.joined():
        imports.begin(user_id, import_id, on_conflict=on_conflict, mapping=file.mapping)


def _require_known(file: File) -> None:
    if not (file.source or "url" in file.mapping):
        raise AppError("import_unrecognized", columns=", ".join(file.columns)[:_MAX_SHOWN] or "none")


def _rows(origin: File | Service) -> Iterator[ImportRow]:
    if isinstance(origin, Service):
        return readers.read_service(origin.source, origin.address, origin.token)
    stream: Any = origin.stream
    return readers.read(stream, origin.source or "auto", origin.mapping or None)


def preview(user_id: int, origin: File | Service) -> Row:
    """Return what was recognized, and the first rows as they would be stored. Nothing is stored."""
    rows: list[Row] = []
    try:
        if isinstance(origin, File) and origin.source == archive.SOURCE:
            stream: Any = origin.stream
            rows = archive_errors.preview(stream, PREVIEW_ROWS)
        elif origin.source or "url" in origin.mapping:
            first = [*islice(_rows(origin), PREVIEW_ROWS)]
            # Channels that are missing would be made.
            context = bodies.Context(bodies.own_hosts(user_id, first), {})
            rows = [_describe(row, context) for row in first]
    except ReadError as error:
        raise AppError("import_unreadable", problem=error.message) from None
    return {
        "source": origin.source or None,
        "format": origin.form,
        "columns": origin.columns,
        "mapping": origin.mapping,
        "rows": rows,
    }


def _describe(row: ImportRow, context: bodies.Context) -> Row:
    """Return a row as it would be stored."""
    checked = None if row.is_visits else bodies.check(row, context, job.loader())
    shown = checked.body if not isinstance(checked, Outcome) and checked else row.record
    return {
        "number": row.number,
        "link": {name: str(value) for name, value in shown.items() if name != "password"},
        "channels": bodies.channel_names(row),
        "created": row.created,
        "clicks": row.clicks,
        "visits": len(row.visits),
        "problem": checked.message if isinstance(checked, Outcome) else None,
    }


def add(user_id: int, origin: File | Service, *, on_conflict: str, state: str = "queued", with_job: bool = True) -> int:
    """Store an import with its file, and its job unless the caller runs the batches. Return its id."""
    members: Row = {"source": origin.source, "on_conflict": on_conflict, "state": state}
    if isinstance(origin, Service):
        members |= {"address": origin.address, "token": keys.seal(user_id, origin.token)}
    else:
        if state != "draft":
            _require_known(origin)
        members |= {"name": origin.name, "size": origin.size, "mapping": origin.mapping}
    with transaction.joined():
        if state == "draft":
            imports.delete_drafts(user_id)
        import_id = imports.add(user_id, **members)
        if isinstance(origin, File):
            stored_file.store(user_id, import_id, origin.stream)
        if with_job:
            imports.enqueue(user_id, import_id)
    return import_id
