"""Store a batch of waiting rows."""

from abc import ABC, abstractmethod
from time import monotonic
from typing import Any, NamedTuple

from linkmgr.db import jobs
from linkmgr.db.statements import Row
from linkmgr.imports import account, bodies, links, staged, visits
from linkmgr.imports.account import rows as account_rows
from linkmgr.imports.account.zip_file import Line
from linkmgr.imports.batch import Batch
from linkmgr.imports.links import Loader, Outcome, Sent
from linkmgr.imports.rows import ImportRow
from linkmgr.repository import import_rows, imported_rows

MAX_ROWS = 500  # of a batch, and about as many visits
CHECK_SECONDS = 0.5  # of checking the rows of a batch; the hash of a password takes 30 ms
LOCKED_SECONDS = 0.5  # until the next try, while another import of the user stores a batch of an account
TOO_SLOW = "This row takes too long to store. Try again, or give it fewer channels and shorter texts."
# Rows of which each has a subtransaction. PostgreSQL keeps 64 of a transaction in memory, and with more it slows down
# the queries of all.
MAX_SUBTRANSACTIONS = 30
_ALONE = ("domains", "logos")  # lines that are a batch of their own: a request to another host, or much memory


class Context(NamedTuple):
    user_id: int
    import_id: int
    details: Row
    loader: Loader

    @property
    def rule(self) -> links.Rule:
        sets_clicks = self.details["source"] not in ("linkmgr", account.SOURCE)
        return links.Rule(self.details["on_conflict"], self.details["first_id"], sets_clicks)


class Prepared(ABC):
    """Rows that are checked before the transaction that stores them."""

    def __init__(self, context: Context, waiting: list[Row], rows: list[Any]) -> None:
        self.context, self.rows = context, rows
        self.numbers = [row["number"] for row in waiting]
        self.lines = sum(row["lines"] for row in waiting)
        self.visits: list[Row] = []

    @abstractmethod
    def store(self) -> Batch: ...

    def fail(self) -> Batch:
        """Return the batch of a row that takes longer than a statement may."""
        batch = Batch()
        batch.count(self.rows[0], Outcome("failed", None, "busy", TOO_SLOW))
        return batch


def prepare(context: Context, waiting: list[Row]) -> Prepared:
    is_account, kind = context.details["source"] == account.SOURCE, waiting[0]["kind"]
    if kind in _ALONE:
        waiting = waiting[:1]
    elif kind not in ("links", "visits", "answers") or context.rule.on_conflict == "update":
        waiting = waiting[:MAX_SUBTRANSACTIONS]
    rows = [*staged.unpack(context.user_id, waiting, is_account=is_account)]
    if is_account:
        return _Lines(context, waiting, rows)
    if kind == "visits":
        return _Visits(context, waiting, rows)
    return _Links(context, waiting, rows)


class _Links(Prepared):
    """Links of a file or a service, as many as can be checked in a moment."""

    def __init__(self, context: Context, waiting: list[Row], rows: list[ImportRow]) -> None:
        end, hosts = monotonic() + CHECK_SECONDS, bodies.own_hosts(context.user_id, rows)
        self._checked: list[Sent | Outcome] = []
        for row in rows:
            self._checked.append(bodies.check(row, hosts, context.loader))
            if monotonic() > end:
                break
        number = len(self._checked)
        super().__init__(context, waiting[:number], rows[:number])

    def store(self) -> Batch:
        batch, user_id = Batch(), self.context.user_id
        good = [(row, sent) for row, sent in zip(self.rows, self._checked, strict=True) if isinstance(sent, Sent)]
        channels = bodies.channel_ids(user_id, [row for row, _ in good])
        for row, sent in good:
            sent.set_channels([channels[name] for name in bodies.channel_names(row)])
        stored = iter(links.store(user_id, [sent for _, sent in good], self.context.rule, self.context.loader))
        for row, checked in zip(self.rows, self._checked, strict=True):
            outcome = next(stored) if isinstance(checked, Sent) else checked
            batch.count(row, outcome)
            batch.cut += isinstance(checked, Sent) and checked.is_cut and outcome.kind in ("made", "updated")
        return batch


class _Visits(Prepared):
    """Visits of links that this import has made. Those of other links are not repeated."""

    def __init__(self, context: Context, waiting: list[Row], rows: list[ImportRow]) -> None:
        super().__init__(context, waiting, rows)
        names = [*set(map(staged.name_of, rows))]
        ids = import_rows.references(context.user_id, context.import_id, "links", names, made=True)
        for row in rows:
            if link_id := ids.get(staged.name_of(row)):
                self.visits += visits.convert(context.user_id, link_id, row.visits)

    def store(self) -> Batch:
        batch = Batch(visits=self.visits)
        _store_visits(self.context, batch)
        return batch


class _Lines(Prepared):
    """Lines of an exported account."""

    def __init__(self, context: Context, waiting: list[Row], lines: list[Line]) -> None:
        super().__init__(context, waiting, lines)
        self._checks = account_rows.check_domains(context.user_id, lines, context.loader)

    def store(self) -> Batch:
        user_id, import_id, _, loader = self.context
        if not imported_rows.try_lock(user_id):
            raise jobs.Later(LOCKED_SECONDS)
        batch = account_rows.Store(user_id, import_id, self.context.rule, loader, self._checks).run(self.rows)
        self.visits = batch.visits
        _store_visits(self.context, batch)
        return batch


def _store_visits(context: Context, batch: Batch) -> None:
    if batch.visits:
        user_id, import_id, details, _ = context
        batch.refused = visits.store(user_id, import_id, details["visits"], batch.visits)
