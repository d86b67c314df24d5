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

_TOGETHER = 100  # visits of a stored row
_LINKS = FILES.index("links")


def pack(user_id: int, rows: list[ImportRow | Line]) -> list[Row]:
    """Return rows as import_rows.add stores them. Visits that follow each other become one row."""
    packed = []
    for is_visits, group in groupby(rows, lambda row: row.is_visits):
        members = [*group]
        size = _TOGETHER if is_visits else 1
        packed += [_packed(user_id, members[n : n + size]) for n in range(0, len(members), size)]
    return packed


def _packed(user_id: int, rows: list[ImportRow | Line]) -> Row:
    first = rows[0]
    return {
        "number": first.number,
        "place": _place(first),
        "kind": first.kind,
        "name": first.name,
        "lines": len(rows),
        "content": keys.seal(user_id, json.dumps(rows)),
    }


def _place(row: ImportRow | Line) -> int:
    """Return the place of a row. Links that remain on our host come before those of other hosts, which may move
    there."""
    if isinstance(row, ImportRow) and not row.is_visits:
        return 2 * _LINKS + bool(bodies.foreign_host(row))
    return 2 * (FILES.index(row.kind) if row.kind in FILES else len(FILES))


def unpack(user_id: int, records: list[Row], *, is_account: bool) -> Iterator[Any]:
    """Yield the rows of a list in import_rows."""
    for record in records:
        for values in json.loads(keys.unseal(user_id, record["content"])):
            if is_account:
                yield Line(*values)
            else:
                row = ImportRow(*values)
                yield row._replace(visits=[RawVisit(*raw) for raw in row.visits])
