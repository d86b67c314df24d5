"""Prepare the next batch of waiting rows."""

from time import monotonic

from linkmgr.db.statements import Row
from linkmgr.imports import account, bodies, links, staged, visits
from linkmgr.imports.account.rows import Lines
from linkmgr.imports.batch import Batch
from linkmgr.imports.links import Outcome, Sent
from linkmgr.repository import import_rows

MAX_ROWS = 500  # of a batch, and about as many visits
CHECK_SECONDS = 0.5  # of checking the rows of a batch; the hash of a password takes 30 ms
# Rows of which each has a subtransaction. PostgreSQL keeps 64 of a transaction in memory, and with more it slows down
# the queries of all.
MAX_SUBTRANSACTIONS = 30
_ALONE = ("domains", "logos")  # lines that are a batch of their own: a request to another host, or much memory


def prepare(user_id: int, details: Row, waiting: list[Row]) -> Batch:
    """Return the batch of the first of these rows."""
    is_account, kind = details["source"] == account.SOURCE, waiting[0]["kind"]
    batch = Lines if is_account else Visits if kind == "visits" else Links
    if kind in _ALONE:
        waiting = waiting[:1]
    elif kind not in ("links", "visits", "answers") or details["on_conflict"] == "update":
        waiting = waiting[:MAX_SUBTRANSACTIONS]
    return batch(user_id, details, waiting, [*staged.unpack(user_id, waiting, is_account=is_account)])


class Links(Batch):
    """Links of a file or a service, as many as can be checked in a moment."""

    def check(self) -> None:
        end, hosts = monotonic() + CHECK_SECONDS, bodies.own_hosts(self.user_id, self.rows)
        self._checked: list[Sent | Outcome] = []
        for row in self.rows:
            self._checked.append(bodies.check(row, hosts))
            if monotonic() > end:
                break
        self.waiting = self.waiting[: len(self._checked)]

    def store(self) -> None:
        good = [(row, sent) for row, sent in zip(self.rows, self._checked, strict=False) if isinstance(sent, Sent)]
        channels = bodies.channel_ids(self.user_id, [row for row, _ in good])
        for row, sent in good:
            sent.set_channels([channels[name] for name in bodies.channel_names(row)])
        outcomes = links.store_checked(self.user_id, self._checked, self.details)
        for row, checked, outcome in zip(self.rows, self._checked, outcomes, strict=False):
            self.count(row, outcome)
            self.cut += isinstance(checked, Sent) and checked.is_cut and outcome.kind in ("made", "updated")


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
