"""Requests to import a file or to read a service: preview and creation."""

from contextlib import suppress
from dataclasses import replace
from typing import IO, NamedTuple

import orjson

from linkmgr.core import keys
from linkmgr.core.database import transaction
from linkmgr.core.database.statements import Row, undoable
from linkmgr.core.errors import AppError, not_found
from linkmgr.core.fields.problems import invalid
from linkmgr.features.imports import files, services, stored_file, values
from linkmgr.features.imports import repository as imports
from linkmgr.features.imports.account import reading
from linkmgr.features.imports.files import sql_file, text
from linkmgr.features.imports.links import Sent, check, own_hosts, store
from linkmgr.features.imports.rows import ImportRow, ReadError
from linkmgr.features.imports.sources import BY_NAME, mapping_of

SOURCES = (*sorted(BY_NAME), reading.SOURCE)
PREVIEW_ROWS = 10
_NO_ACCOUNT = "This is not an export of an account. Send its zip, or the CSV of its rows that failed."
_MAX_QUOTED = 300  # characters of the names of columns in a message


Mapping = dict[str, str | None]  # the columns of members, and None for each column that is ignored


class Service(NamedTuple):
    source: str
    address: str
    token: str
    mapping: Mapping = {}
    form: str = "service"
    columns: list[str] = []
    names: list[str] = []


class File(NamedTuple):
    stream: IO[bytes]
    size: int
    name: str
    source: str  # of SOURCES; empty if only the mapping names the columns
    mapping: Mapping
    form: str  # csv, json, jsonl, sql or zip
    columns: list[str]
    names: list[str]  # of columns, with the members of objects


def recognize(stream: IO[bytes], size: int, name: str, source: str | None, sent: Mapping) -> File:
    """Recognize a file. `source` and the mapping `sent` take precedence over what its first bytes
    suggest."""
    ignored = [column for column, mapped in sent.items() if mapped is None]
    mapping = {member: column for member, column in sent.items() if column is not None}
    head = stream.read(text.HEAD)
    try:
        if reading.is_zip(head):
            reading.check(stream)
            form = files.Form("zip", [], [], None)
        else:
            form = files.recognize(head)
    except ReadError as error:
        raise AppError("import_unreadable", problem=error.message) from None
    stream.seek(0)
    is_report = source in (None, reading.SOURCE) and not form.source and reading.has_columns(form.columns)
    if is_report or form.format == "zip":
        return File(stream, size, name, reading.SOURCE, {}, form.format, form.columns, [])
    if source == reading.SOURCE:
        raise AppError("import_unreadable", problem=_NO_ACCOUNT)
    columns, named = set(form.columns), [*mapping.values(), *ignored]
    if missing := [column for column in named if column not in {*columns, ""} and form.format == "csv"]:
        raise invalid(f"mapping names columns that the file does not have: {', '.join(missing)}")
    chosen = source or (form.source.name if form.source else "")
    guesses = mapping_of(BY_NAME.get(chosen), form.columns)
    if not chosen:  # a column that the mapping names is of no other member
        guesses = {member: column for member, column in guesses.items() if column not in named}
    mapped: Mapping = {member: column for member, column in (guesses | mapping).items() if column}
    mapped |= dict.fromkeys(ignored)
    return File(stream, size, name, chosen, mapped, form.format, form.columns, form.names)


def draft(user_id: int, import_id: int, mapping: Mapping) -> File:
    details = imports.details(user_id, import_id)
    if details is None or details["state"] != "draft":
        raise not_found("import")
    return recognize(stored_file.open_file(details), details["size"], "", None, mapping)


def begin(user_id: int, import_id: int, *, on_conflict: str, mapping: Mapping) -> None:
    file = draft(user_id, import_id, mapping)
    _require_known(file)
    with transaction.in_transaction():
        imports.begin(
            user_id, import_id, on_conflict=on_conflict, mapping=file.mapping, ignored=_ignored(file)
        )
        imports.enqueue(user_id, import_id)


def resume(user_id: int, import_id: int) -> None:
    with transaction.in_transaction():
        imports.resume(user_id, import_id)
        imports.enqueue(user_id, import_id)


def delete(user_id: int, import_id: int) -> bool:
    """Cancel an import, or delete the record of one that has ended. Return True if it was
    cancelled."""
    with transaction.in_transaction():
        cancelled = imports.cancel(user_id, import_id)
        if cancelled:
            imports.enqueue(user_id, import_id)
        else:
            imports.delete(user_id, import_id)
    return cancelled


def _require_known(file: File) -> None:
    if not (file.source or "url" in file.mapping):
        raise AppError("import_unrecognized", columns=", ".join(file.columns)[:_MAX_QUOTED] or "none")


class _Undone(Exception):
    """The end of a transaction of which nothing is kept."""


def _try(user_id: int, sent: list[Sent], source: str, on_conflict: str) -> None:
    """Store links in a transaction that is undone, and keep the outcomes of those that failed."""
    tried = [replace(link, body={**link.body}, link={**link.link}) for link in sent]
    with suppress(_Undone), transaction.in_transaction(), undoable():
        details = {"id": None, "source": source, "on_conflict": on_conflict, "first_id": imports.next_id()}
        store(user_id, [link for link in tried if link.link], details)
        raise _Undone
    for link, result in zip(sent, tried, strict=True):
        if result.outcome and result.outcome.result == "failed":
            link.outcome = result.outcome


def preview(user_id: int, origin: File | Service, on_conflict: str = "skip") -> Row:
    """Return what was recognized, and the first rows as they would be stored: of at most 64 KiB of
    a file, or of the first page of a service, so that the work of a request is bounded."""
    try:
        rows = _first_rows(user_id, origin)
    except ReadError as error:
        raise AppError("import_unreadable", problem=error.message) from None
    hosts = own_hosts(user_id, rows)
    is_account = origin.source == reading.SOURCE
    sent = [
        Sent() if is_account or row.is_visits else check(row, hosts, origin.source, origin.mapping)
        for row in rows
    ]
    _try(user_id, sent, origin.source, on_conflict)
    return {
        "source": origin.source or None,
        "format": origin.form,
        "columns": origin.columns,
        "mapping": {member: column for member, column in origin.mapping.items() if column},
        "closing": values.asked_columns(BY_NAME.get(origin.source), origin.mapping, origin.names),
        "ignored": [name for name, column in origin.mapping.items() if column is None],
        "notes": [] if is_account or not origin.columns else _notes(origin, rows),
        "rows": [_describe(row, link) for row, link in zip(rows, sent, strict=True)],
    }


def _notes(origin: File | Service, rows: list[ImportRow]) -> list[str]:
    notes = []
    if origin.form == "sql" and all(row.is_visits for row in rows):
        megabytes = sql_file.MAX_SEARCHED >> 20
        notes.append(
            f"The first {megabytes} MiB of this dump have no link, and a preview reads no more. "
            "The import reads all of it."
        )
    if "custom" not in origin.mapping:
        notes.append(
            "No column of aliases was found: each link gets a new one. Name it as custom in the mapping."
        )
    closing = values.asked_columns(BY_NAME.get(origin.source), origin.mapping, origin.names)
    if closing := [name for name in closing if name not in origin.mapping]:
        notes.append(
            "These columns may close links, and no member takes them: "
            f"{', '.join(closing)[:_MAX_QUOTED]}. Rows with such values fail unless you map or "
            "ignore the columns."
        )
    return [*notes, *filter(None, [_ignored(origin)])]


def _ignored(origin: File | Service) -> str:
    """Return a sentence that names the columns that are not used, or ""."""
    ignored = values.ignored_columns(BY_NAME.get(origin.source), origin.mapping, origin.names)
    names = ", ".join(ignored)[:_MAX_QUOTED].replace("\0", "\ufffd")
    return f"These columns are ignored: {names}." if ignored else ""


def _first_rows(user_id: int, origin: File | Service) -> list[ImportRow]:
    if isinstance(origin, Service):
        return services.first_rows(
            services.connect(origin.source, origin.address, origin.token, user_id), PREVIEW_ROWS
        )
    if origin.source == reading.SOURCE:
        return reading.first_rows(origin.stream, PREVIEW_ROWS)
    if origin.source or "url" in origin.mapping:
        return files.first_rows(origin.stream, origin.source, origin.mapping, PREVIEW_ROWS)
    return []


def _describe(row: ImportRow, sent: Sent) -> Row:
    return {
        "number": row.number,
        "link": {
            name: value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
            for name, value in (sent.body or row.members).items()
            if name != "password"
        },
        "channels": row.channels,
        "created": row.created,
        "clicks": row.clicks,
        "visits": len(row.visits),
        "problem": sent.outcome.message if sent.outcome else row.problem,
    }


def add(user_id: int, origin: File | Service, on_conflict: str | None, *, with_job: bool = True) -> int:
    """Store an import with its file, and its job unless the caller runs the batches. Without
    `on_conflict` it is a draft, of which a user has one, and waits for `begin`. Return its id."""
    if isinstance(origin, Service):
        members: Row = {"address": origin.address, "token": keys.seal(user_id, origin.token)}
    else:
        members = {"name": origin.name, "size": origin.size}
        if on_conflict:
            _require_known(origin)
    with transaction.in_transaction():
        if not on_conflict:
            imports.delete_drafts(user_id)
        import_id = imports.add(user_id, source=origin.source, **members)
        if on_conflict:
            imports.begin(
                user_id, import_id, on_conflict=on_conflict, mapping=origin.mapping, ignored=_ignored(origin)
            )
        if isinstance(origin, File):
            stored_file.store(user_id, import_id, origin.stream)
        if on_conflict and with_job:
            imports.enqueue(user_id, import_id)
    return import_id
