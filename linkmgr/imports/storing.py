"""Rows between the two stages of an import, which are encrypted because they may have passwords and IP addresses, and
the next batch of them.
"""

import json
from collections.abc import Iterator
from itertools import groupby
from time import monotonic
from typing import Any

from linkmgr import keys
from linkmgr.db.statements import Row
from linkmgr.imports import account, links, visits
from linkmgr.imports.account.rows import Lines
from linkmgr.imports.account.zip_file import FILES, Line
from linkmgr.imports.batch import Batch
from linkmgr.imports.links import Sent
from linkmgr.imports.rows import ImportRow, RawVisit
from linkmgr.repository import import_rows, imported

MAX_ROWS = 500  # of a batch, and about as many visits
CHECK_SECONDS = 0.5  # of checking the rows of a batch; the hash of a password takes 30 ms
# Rows of which each has a subtransaction. PostgreSQL keeps 64 of a transaction in memory, and with more it slows down
# the queries of all.
MAX_SUBTRANSACTIONS = 30
_ALONE = ("domains", "logos")  # lines that are a batch of their own: a request to another host, or much memory

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
        return 2 * _LINKS + bool(row.foreign_host)
    return 2 * (FILES.index(row.kind) if row.kind in FILES else len(FILES))


def _unpack(user_id: int, records: list[Row], *, is_account: bool) -> Iterator[Any]:
    """Yield the rows of a list in import_rows."""
    for record in records:
        for values in json.loads(keys.unseal(user_id, record["content"])):
            if is_account:
                yield Line(*values)
            else:
                row = ImportRow(*values)
                yield row._replace(visits=[RawVisit(*raw) for raw in row.visits])


def prepare(details: Row, waiting: list[Row]) -> Batch:
    """Return the batch of the first of these rows."""
    is_account, kind = details["source"] == account.SOURCE, waiting[0]["kind"]
    batch = Lines if is_account else Visits if kind == "visits" else Links
    if kind in _ALONE:
        waiting = waiting[:1]
    elif kind not in ("links", "visits", "answers") or details["on_conflict"] == "update":
        waiting = waiting[:MAX_SUBTRANSACTIONS]
    return batch(details, waiting, [*_unpack(details["user_id"], waiting, is_account=is_account)])


class Links(Batch):
    """Links of a file or a service, as many as can be checked in a moment."""

    def check(self) -> None:
        hosts = imported.own_ids(self.user_id, "domains", [*{row.host for row in self.rows}], by="host")
        self._sent, end = list[Sent](), monotonic() + CHECK_SECONDS
        while len(self._sent) < len(self.rows) and monotonic() < end:
            self._sent.append(links.check(self.rows[len(self._sent)], hosts))
        self.waiting, self.rows = self.waiting[: len(self._sent)], self.rows[: len(self._sent)]

    def store(self) -> None:
        good = [(row, sent) for row, sent in zip(self.rows, self._sent, strict=True) if not sent.outcome]
        channels = imported.channel_ids(self.user_id, [*{name for row, _ in good for name in row.channels}])
        for row, sent in good:
            if row.channels:
                sent.body["channel"] = sent.link["channel"] = [channels[name] for name in row.channels]
        self.store_links(self.rows, self._sent)


class Visits(Batch):
    """Visits of links that this import has made. Those of other links are not repeated."""

    def check(self) -> None:
        names = [*{row.name for row in self.rows}]
        ids = import_rows.references(self.user_id, self.details["id"], "links", names, made=True)
        for row in self.rows:
            if link_id := ids.get(row.name):
                self.visits += visits.convert(self.user_id, link_id, row.visits)

    def store(self) -> None:
        self.store_visits()
