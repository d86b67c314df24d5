"""Visits that another service recorded, in the form in which visits are stored."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import orjson

from linkmgr.db.statements import Row
from linkmgr.imports.rows import RawVisit
from linkmgr.repository import imported_links, visits
from linkmgr.settings import this_app
from linkmgr.visits import record
from linkmgr.visits.queue import VisitQueue

MAX_AGE = timedelta(days=3653)  # each month has a partition; older visits remain in `imported_clicks`
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


def store(user_id: int, import_id: int, start: int, converted: list[Row]) -> int:
    """Store visits in a transaction, and subtract those of people from the clicks that the source counted. `start` is
    the number of visits that the import has stored. Return the number of visits beyond the clicks of the plan."""
    text = orjson.dumps(converted).decode()
    refused = visits.add_imported(spool(import_id), start, start + len(converted), text)
    people = Counter(visit["tracked_id"] for visit in converted if not visit["bot"])
    people.subtract({row["tracked_id"]: row["visits"] for row in refused if not row["bot"]})
    if people:
        imported_links.subtract_visits(user_id, dict(people))
    queue: VisitQueue = this_app().extensions["linkmgr_visit_queue"]
    queue.expect_pending()
    return sum(row["visits"] for row in refused)


def create_partitions(converted: list[Row]) -> None:
    visits.create_partitions_for(orjson.dumps(converted).decode())


def spool(import_id: int) -> str:
    return f"import-{import_id}"
