"""Rows between the two stages of an import, which are encrypted because they may have passwords and
IP addresses, and those of them that are stored in one transaction.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from time import monotonic

import orjson

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.features.exports.account import FILES
from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.features.imports import links, visits
from linkmgr.features.imports.account.reading import SOURCE
from linkmgr.features.imports.links import Outcome, Sent
from linkmgr.features.imports.rows import ImportRow, RawVisit

CHECK_SECONDS = 0.5  # of checking the rows of a batch; the hash of a password takes 30 ms
TOO_SLOW = "This row takes too long to store. Try again, or give it fewer channels and shorter texts."

_TOGETHER = 100  # visits of a stored row
_ROW_BYTES = 400  # of a stored row besides its content: its name, and its entries in indexes


def pack(details: Row, rows: list[ImportRow]) -> list[Row]:
    packed = []
    for is_visits, group in groupby(rows, lambda row: row.is_visits):
        members = [*group]
        size = _TOGETHER if is_visits else 1
        packed += [_packed(details, members[n : n + size]) for n in range(0, len(members), size)]
    return packed


def _packed(details: Row, rows: list[ImportRow]) -> Row:
    """Return a stored row. Links that remain on our host come before those of other hosts, which
    may move there."""
    first = rows[0]
    comes_later = details["source"] != SOURCE and first.file == "links" and first.foreign_host
    return {
        "number": first.number,
        "place": 2 * FILES.index(first.file) + bool(comes_later),
        "file": first.file,
        "name": first.name,
        "lines": len(rows),
        "content": keys.seal_bytes(details["user_id"], _to_json(rows)),
    }


def staged_bytes(packed: Row) -> int:
    return len(packed["content"]) + _ROW_BYTES


def _to_json(rows: list[ImportRow]) -> bytes:
    return json.dumps(rows, ensure_ascii=False).encode(errors="surrogatepass")


def _unpack(user_id: int, stored: list[Row]) -> Iterator[ImportRow]:
    for packed in stored:
        for values in json.loads(keys.unseal_bytes(user_id, packed["content"])):
            row = ImportRow(*values)
            yield row._replace(visits=[RawVisit(*raw) for raw in row.visits]) if row.visits else row


class Batch:
    def __init__(self, details: Row, waiting: list[Row]) -> None:
        self.user_id, self.details, self.waiting = details["user_id"], details, waiting
        self.rows = [*_unpack(self.user_id, waiting)]
        self.outcomes: list[tuple[ImportRow, Outcome]] = []
        self.visits: list[Row] = []
        self.stored_visits = 0  # without those beyond the clicks of the plan
        self.cut = 0  # links whose title was cut
        self.kept_bytes = 0
        self.staged_bytes = 0  # that the import has more after the batch
        self.check()

    def check(self) -> None:
        """Do what may take long, before the transaction."""
        self._sent = list[Sent]()
        if self.waiting[0]["file"] == "visits":
            self._convert_visits()
            return
        hosts, end = links.own_hosts(self.user_id, self.rows), monotonic() + CHECK_SECONDS
        source, mapping = self.details["source"], self.details["mapping"]
        while len(self._sent) < len(self.rows) and monotonic() < end:
            self._sent.append(links.check(self.rows[len(self._sent)], hosts, source, mapping))
        self.waiting, self.rows = self.waiting[: len(self._sent)], self.rows[: len(self._sent)]

    def _convert_visits(self) -> None:
        names = [*{row.name for row in self.rows}]
        ids = import_rows.references(self.user_id, self.details["id"], "links", names, made=True)
        for row in self.rows:
            if link_id := ids.get(row.name):
                self.visits += visits.convert(self.user_id, link_id, row.visits)

    def store(self) -> None:
        if self._sent:
            self.store_links(self.rows, self._sent)
        self.store_visits()

    def report(self, row: ImportRow) -> dict[str, str]:
        return row.raw

    def store_links(self, rows: list[ImportRow], sent: list[Sent]) -> None:
        links.store(self.user_id, sent, self.details)
        self.outcomes += [(row, link.outcome) for row, link in zip(rows, sent, strict=True) if link.outcome]
        self.cut = sum(
            link.is_cut and link.outcome.result in ("made", "updated") for link in sent if link.outcome
        )

    def store_visits(self) -> None:
        if self.visits:
            self.stored_visits = visits.store(self.user_id, self.visits)

    def fail(self) -> None:
        self.outcomes = [(self.rows[0], Outcome("failed", None, "busy", TOO_SLOW))]
        self.stored_visits = self.cut = 0  # of the try that was undone

    @property
    def counts(self) -> Counter[str]:
        return Counter(outcome.result for _, outcome in self.outcomes)

    def kept(self, *, failed: int, skipped: int, max_bytes: int) -> list[Row]:
        """Return what is kept of the rows: those to which others may refer, and some of those that
        failed and of those that were skipped, at most these numbers and bytes. Set `kept_bytes` and
        `staged_bytes`. Only lines of an account and pages of a service refer to rows that the
        import did not make."""
        kept, left = list[Row](), {"failed": failed, "skipped": skipped}
        keeps_all = self.details["source"] == SOURCE or self.details["size"] is None
        self.kept_bytes, self.staged_bytes = 0, -sum(map(staged_bytes, self.waiting))
        for row, outcome in self.outcomes:
            is_made = outcome.result == "made"
            kept_row: Row = {"number": row.number, "row_id": outcome.id, "made": is_made}
            if outcome.code and left[outcome.result] > 0:
                raw = {
                    name.replace("\0", ""): text.replace("\0", "") for name, text in self.report(row).items()
                }
                report = {"raw": raw, "code": outcome.code, "message": outcome.message}
                size = len(orjson.dumps(report))
                if self.kept_bytes + size <= max_bytes:
                    left[outcome.result] -= 1
                    self.kept_bytes += size
                    kept_row |= report
            if "code" in kept_row or is_made or (keeps_all and outcome.id is not None):
                kept.append(kept_row)
                self.staged_bytes += 0 if "code" in kept_row or is_made else _ROW_BYTES
        return kept
