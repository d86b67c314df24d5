"""Rows between the two stages of an import, which are encrypted because they may have passwords and IP addresses, and
the next batch of them.
"""

import json
from collections.abc import Iterator
from itertools import groupby

from linkmgr import keys
from linkmgr.db.statements import Row
from linkmgr.imports.account.export import FILES
from linkmgr.imports.account.reading import SOURCE
from linkmgr.imports.account.rows import Lines
from linkmgr.imports.batches import Batch
from linkmgr.imports.rows import ImportRow, RawVisit

MAX_ROWS = 500  # of a batch, and about as many visits
# Rows of which each has a subtransaction. PostgreSQL keeps 64 of a transaction in memory, and with more it slows down
# the queries of all.
MAX_SUBTRANSACTIONS = 30
_ALONE = ("domains", "logos")  # lines that are a batch of their own: a request to another host, or much memory
_TOGETHER = 100  # visits of a stored row


def pack(details: Row, rows: list[ImportRow]) -> list[Row]:
    """Return rows as import_rows.add stores them. Visits that follow each other become one row."""
    packed = []
    for is_visits, group in groupby(rows, lambda row: row.is_visits):
        members = [*group]
        size = _TOGETHER if is_visits else 1
        packed += [_packed(details, members[n : n + size]) for n in range(0, len(members), size)]
    return packed


def _packed(details: Row, rows: list[ImportRow]) -> Row:
    """Return a stored row. Links that remain on our host come before those of other hosts, which may move there."""
    first = rows[0]
    comes_later = details["source"] != SOURCE and first.kind == "links" and first.foreign_host
    return {
        "number": first.number,
        "place": 2 * FILES.index(first.kind) + bool(comes_later),
        "kind": first.kind,
        "name": first.name,
        "lines": len(rows),
        "content": keys.seal(details["user_id"], json.dumps(rows)),
    }


def _unpack(user_id: int, records: list[Row]) -> Iterator[ImportRow]:
    """Yield the rows of a list in import_rows."""
    for record in records:
        for values in json.loads(keys.unseal(user_id, record["content"])):
            row = ImportRow(*values)
            yield row._replace(visits=[RawVisit(*raw) for raw in row.visits]) if row.visits else row


def prepare(details: Row, waiting: list[Row]) -> Batch:
    """Return the batch of the first of these rows."""
    kind = waiting[0]["kind"]
    batch = Lines if details["source"] == SOURCE else Batch
    if kind in _ALONE:
        waiting = waiting[:1]
    elif kind not in ("links", "visits", "answers") or details["on_conflict"] == "update":
        waiting = waiting[:MAX_SUBTRANSACTIONS]
    return batch(details, waiting, [*_unpack(details["user_id"], waiting)])
