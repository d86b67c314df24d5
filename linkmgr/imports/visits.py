"""Visits that another service recorded, in the form in which visits are stored."""

from datetime import UTC, datetime, timedelta

import orjson
from psycopg2 import errors as pg

from linkmgr.db import transaction
from linkmgr.db.statements import Row
from linkmgr.imports.rows import RawVisit
from linkmgr.repository import import_batches, imported_links, visits
from linkmgr.settings import this_app
from linkmgr.visits import record
from linkmgr.visits.queue import VisitQueue

MAX_AGE = timedelta(days=3653)  # each month has a partition; older visits remain in `imported_clicks`
MAX_STORED = 500  # visits of a statement
_FORMAT = "%Y-%m-%d %H:%M:%S"


def convert(user_id: int, link_id: int, raw: list[RawVisit]) -> list[Row]:
    """Return the visits that can be stored."""
    now = datetime.now(UTC)
    converted = []
    for visit in raw:
        try:
            at = datetime.strptime(visit.time, _FORMAT).replace(tzinfo=UTC)
        except ValueError:
            continue
        if now - MAX_AGE < at <= now:
            converted.append(
                record.imported(
                    link_id,
                    user_id,
                    at=at.timestamp(),
                    agent=visit.agent,
                    referrer=visit.referrer,
                    country=visit.country,
                    address=visit.address,
                )
            )
    return converted


def store(user_id: int, import_id: int, stored: int, pending: list[Row]) -> None:
    """Store visits. `stored` is the number of visits of the import that earlier batches have stored.

    A repetition after a crash stores each visit once: the name of the import takes the place of a spool file, and the
    number of visits that of its bytes.
    """
    for start in range(0, len(pending), MAX_STORED):
        part = pending[start : start + MAX_STORED]
        try:
            _store_part(user_id, import_id, stored + start, part)
        except pg.CheckViolation:  # a month without a partition
            visits.create_partitions_for(orjson.dumps(part).decode())
            _store_part(user_id, import_id, stored + start, part)
    queue: VisitQueue = this_app().extensions["linkmgr_visit_queue"]
    queue.expect_pending()


def _store_part(user_id: int, import_id: int, start: int, part: list[Row]) -> None:
    """Store visits, and return those of people that are beyond the plan's clicks to `imported_clicks` of their links,
    in one transaction."""
    with transaction.lazily(lambda: None) as writes:
        writes.begin()
        refused = visits.add_imported(spool(import_id), start, start + len(part), orjson.dumps(part).decode())
        if refused:
            import_batches.count_refused(user_id, import_id, sum(row["visits"] for row in refused))
            people = {row["target_id"]: row["visits"] for row in refused if not row["bot"]}
            imported_links.add_clicks(user_id, people)
        writes.commit()


def spool(import_id: int) -> str:
    return f"import-{import_id}"
