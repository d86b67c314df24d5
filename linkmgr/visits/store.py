import re

from linkmgr.core.database.statements import Row, database, row, run
from linkmgr.visits.dimensions import DIMENSIONS, TOPS

# Statistics of a link or a QR code without visits.
NO_VISITS: Row = {
    "clicks": 0,
    "uniqueClicks": 0,
    **{member: {} for member in TOPS},
    "socialCount": {"facebook": 0, "twitter": 0, "instagram": 0},
}
# Labels of a link or QR code in a dimension. Clients can send any number of referrers and browsers,
# which would fill the disk, so all further labels are counted as OTHER.
MAX_LABELS = 1000
DETAILED_DAYS = 400  # older rollups have only days
FEW = 8  # a day of a link or QR code with fewer visits is raw, see schema.sql
TOTALS = ("clicks", "visitors", "top_labels")  # columns
ALL_DIMENSIONS = ["", *(dimension.name for dimension in DIMENSIONS)]  # '': all visits
_LABELS = {
    "dimensions": ALL_DIMENSIONS,
    "unbounded": [dimension.name for dimension in DIMENSIONS if not dimension.labels.is_bounded],
    "tops": [*TOPS.values(), "social", "kind"],
}
_USER_ID = re.compile(r'"user_id": ?(\d+)')  # quotation marks in labels are escaped
# A connection keeps the plan that it made for small tables, whose scans are cheap by default.
PRELUDE = "SET LOCAL seq_page_cost = 4; SELECT lock_users(%(users)s::bigint[]); "
ADD = """
    SELECT stored, refused
      FROM store_visits(%(spool)s, %(start)s, %(stop)s, %(visits)s, %(imported)s, %(few)s,
                        %(max_labels)s,
                        %(dimensions)s, %(unbounded)s, %(tops)s)
"""


def add(spool: str, start: int, stop: int, visits: str) -> bool:
    """Store the visits in bytes `start` to `stop` of a spool file, and return True. Skip visits
    beyond the monthly limit of their user. Bots have a counter of their own with the same limit,
    and change only `visits` and the rollups.

    If the file is not stored up to exactly `start`, store nothing and return False. So the
    statement can be repeated if its outcome is unknown. A file without a row in `visit_spools` is
    stored up to 0.

    `visits` is a JSON array of objects with tracked_id, user_id, at (seconds since the epoch),
    visitor (hexadecimal, or empty if it must not be recognized), bot, social, which may be null,
    and a label of each dimension.

    Concurrent statements for the same user wait at the row in `users`. All of them lock rows in the
    same order, which prevents deadlocks.
    """
    [result] = database().execute(
        ADD, parameters(spool, start, stop, visits), idempotent=True, prelude=PRELUDE
    )
    return bool(result["stored"])


def add_imported(user_id: int, visits: str) -> list[Row]:
    """Store visits as `add` does, in a transaction that stores them once. They have counters of
    their own with the same limit, so that old visits leave the month to those that happen in it.
    Return the numbers of those beyond the limit, as `visits` by `tracked_id` and `bot`."""
    spool = f"import-{user_id}"
    run("SELECT set_config('seq_page_cost', '4', true)")
    run("SELECT lock_users(ARRAY[%(user_id)s::bigint])", user_id=user_id)
    result = run(ADD, **parameters(spool, 0, 1, visits, imported=True))
    delete_spool(spool)
    return (result and result["refused"]) or []


def parameters(spool: str, start: int, stop: int, visits: str, *, imported: bool = False) -> Row:
    users = list(set(_USER_ID.findall(visits)))  # faster than PostgreSQL reads the JSON once more
    batch: Row = {
        "spool": spool,
        "start": start,
        "stop": stop,
        "visits": visits,
        "users": users,
        "imported": imported,
    }
    return batch | _LABELS | {"max_labels": MAX_LABELS, "few": FEW}


def statistics(totals: Row) -> Row:
    if not totals["clicks"]:
        return NO_VISITS
    tops = totals["top_labels"] or {}
    social = tops.get("social", {})
    return {
        "clicks": totals["clicks"],
        "uniqueClicks": totals["visitors"],
        **{
            name: {label: str(number) for label, number in tops.get(dimension, {}).items()}
            for name, dimension in TOPS.items()
        },
        "socialCount": {network: social.get(network, 0) for network in NO_VISITS["socialCount"]},
    }


def stored_bytes(spool: str) -> int:
    spooled = row("SELECT stored FROM visit_spools WHERE name = %(spool)s", spool=spool)
    return int(spooled["stored"]) if spooled else 0


def delete_spool(spool: str) -> None:
    run("DELETE FROM visit_spools WHERE name = %(spool)s", spool=spool)


def create_partitions_for(visits: str) -> None:
    run(
        """
        SELECT create_partition(month)
          FROM (SELECT DISTINCT date_trunc('month', least(to_timestamp(at), now()), 'UTC') AS month
                  FROM json_to_recordset(%(visits)s) AS visits (at float8)
                 WHERE at IS NOT NULL) months
        """,
        visits=visits,
    )
