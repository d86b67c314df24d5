"""The effects of a batch, which the job counts."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from linkmgr.db.statements import Row
from linkmgr.imports.links import Outcome


@dataclass
class Batch:
    pending: list[Row] = field(default_factory=list)  # visits
    errors: list[Row] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def count(self, row: Any, outcome: Outcome) -> None:
        """Count a row, which has a number and the columns of the source."""
        self.counts[outcome.kind] += 1
        if outcome.kind == "failed":
            # No text of PostgreSQL has a NUL character.
            raw = {name.replace("\0", ""): value.replace("\0", "") for name, value in row.raw.items()}
            self.errors.append({"number": row.number, "raw": raw, "code": outcome.code, "message": outcome.message})
