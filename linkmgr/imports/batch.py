"""The effects of a batch of rows, which the job counts."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from linkmgr.db.statements import Row
from linkmgr.imports.links import Outcome


@dataclass
class Batch:
    errors: list[Row] = field(default_factory=list)
    kept: list[Row] = field(default_factory=list)  # rows to which others may refer
    counts: Counter[str] = field(default_factory=Counter)
    visits: list[Row] = field(default_factory=list)
    refused: int = 0  # of the visits, which are beyond the clicks of the plan
    cut: int = 0  # links whose title was cut

    def count(self, row: Any, outcome: Outcome) -> None:
        """Count a row, which has a number and the columns of the source."""
        self.counts[outcome.kind] += 1
        if outcome.kind == "failed":
            # No text of PostgreSQL has a NUL character.
            raw = {name.replace("\0", ""): value.replace("\0", "") for name, value in row.raw.items()}
            self.errors.append({"number": row.number, "raw": raw, "code": outcome.code, "message": outcome.message})
        elif outcome.id is not None:
            self.kept.append({"number": row.number, "row_id": outcome.id, "made": outcome.kind == "made"})
