"""Rows between the two stages of an import: encrypted, because they may have passwords and IP addresses."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from linkmgr import keys
from linkmgr.db.statements import Row
from linkmgr.imports import bodies
from linkmgr.imports.account.zip_file import FILES, Line
from linkmgr.imports.rows import ImportRow, RawVisit

LINKS, VISITS = FILES.index("links"), FILES.index("visits")
_TOGETHER = 100  # visits of a stored row
_MAX_NAME = 200  # characters; an alias has at most 50


def pack(user_id: int, rows: list[ImportRow | Line]) -> list[Row]:
    """Return rows as import_rows.add stores them. Visits that follow each other become one row."""
    packed = []
    for is_visits, group in groupby(rows, _is_visits):
        members = [*group]
        size = _TOGETHER if is_visits else 1
        packed += [_packed(user_id, members[n : n + size], is_visits) for n in range(0, len(members), size)]
    return packed


def _is_visits(row: ImportRow | Line) -> bool:
    return row.is_visits if isinstance(row, ImportRow) else row.kind == "visits" and not row.problem


def _packed(user_id: int, rows: list[ImportRow | Line], is_visits: bool) -> Row:
    first = rows[0]
    kind, place = ("visits", 2 * VISITS) if is_visits else _place(first)
    return {
        "number": first.number,
        "place": place,
        "kind": kind,
        "name": name_of(first),
        "lines": len(rows),
        "content": keys.seal(user_id, json.dumps(rows)),
    }


def name_of(row: ImportRow | Line) -> str:
    """Return the name of a row in its source, to which others refer, or ""."""
    if isinstance(row, ImportRow):
        return bodies.reference(row)[:_MAX_NAME] if row.record.get("custom") else ""
    return str(row.record["id"])[:_MAX_NAME] if isinstance(row.record.get("id"), int) else ""


def _place(row: ImportRow | Line) -> tuple[str, int]:
    """Return the kind of a row and its place. Links that remain on our host come before those of other hosts, which may
    move there."""
    if isinstance(row, ImportRow):
        return "links", 2 * LINKS + bool(bodies.foreign_host(row))
    return row.kind, 2 * FILES.index(row.kind) if row.kind in FILES else 2 * VISITS + 1


def unpack(user_id: int, records: list[Row], *, is_account: bool) -> Iterator[Any]:
    """Yield the rows of a list in import_rows."""
    for record in records:
        for values in json.loads(keys.unseal(user_id, record["content"])):
            if is_account:
                yield Line(*values)
            else:
                row = ImportRow(*values)
                yield row._replace(visits=[RawVisit(*raw) for raw in row.visits])
