"""Rows of an import that are stored in one transaction."""

from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

from linkmgr.db.statements import Row
from linkmgr.imports import links, visits
from linkmgr.imports.links import Outcome, Sent

TOO_SLOW = "This row takes too long to store. Try again, or give it fewer channels and shorter texts."


class Batch(ABC):
    """Rows that wait, all of the same kind, and what has become of them."""

    def __init__(self, details: Row, waiting: list[Row], rows: list[Any]) -> None:
        self.user_id, self.details, self.waiting, self.rows = details["user_id"], details, waiting, rows
        self.outcomes: list[tuple[Any, Outcome]] = []  # of rows, which have a number and the columns of the source
        self.visits: list[Row] = []
        self.refused = 0  # of the visits, which are beyond the clicks of the plan
        self.cut = 0  # links whose title was cut
        self.check()

    @abstractmethod
    def check(self) -> None:
        """Do what may take long, before the transaction."""

    @abstractmethod
    def store(self) -> None:
        """Store the rows, in a transaction."""

    def store_links(self, rows: list[Any], sent: list[Sent]) -> None:
        links.store(self.user_id, sent, self.details)
        self.outcomes += [(row, link.outcome) for row, link in zip(rows, sent, strict=True) if link.outcome]
        self.cut = sum(link.is_cut and link.outcome.kind in ("made", "updated") for link in sent if link.outcome)

    def store_visits(self) -> None:
        if self.visits:
            self.refused = visits.store(self.user_id, self.details["id"], self.details["visits"], self.visits)

    def fail(self) -> None:
        """Count the first row as one that takes longer to store than a statement may."""
        self.outcomes, self.visits = [(self.rows[0], Outcome("failed", None, "busy", TOO_SLOW))], []

    @property
    def counts(self) -> Counter[str]:
        return Counter(outcome.kind for _, outcome in self.outcomes)

    @property
    def errors(self) -> list[Row]:
        # No text of PostgreSQL has a NUL character.
        return [
            {
                "number": row.number,
                "raw": {name.replace("\0", ""): value.replace("\0", "") for name, value in row.raw.items()},
                "code": outcome.code,
                "message": outcome.message,
            }
            for row, outcome in self.outcomes
            if outcome.kind == "failed"
        ]

    @property
    def kept(self) -> list[Row]:
        """Return the rows to which others may refer."""
        return [
            {"number": row.number, "row_id": outcome.id, "made": outcome.kind == "made"}
            for row, outcome in self.outcomes
            if outcome.id is not None
        ]
