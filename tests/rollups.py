"""Comparison of the rollups, totals and statistics with the raw visits."""

from collections.abc import Callable
from typing import Any

_DIMENSIONS = """
    LATERAL (VALUES ('', ''), ('country', country), ('city', city), ('referrer', referrer), ('browser', browser),
                    ('os', os), ('device', device), ('language', language)) AS dimensions (dimension, label)
"""
_RAW = f"SELECT target_id, dimension, label, bot, at, 1 AS visits FROM visits, {_DIMENSIONS}"
_OWNED = """
    SELECT id AS target_id, user_id FROM links UNION ALL SELECT id, user_id FROM qrs
"""
_PAIRS = {
    "quarters": (
        f"""SELECT target_id, dimension, label, bot, date_bin('15 minutes', at, 'epoch'), sum(visits)
              FROM ({_RAW}) raw WHERE at >= now() - interval '390 days' GROUP BY 1, 2, 3, 4, 5""",
        """SELECT target_id, dimension, label, bot, at, sum(visits) FROM target_rollups
            WHERE at >= now() - interval '390 days' GROUP BY 1, 2, 3, 4, 5""",
    ),
    "sums": (
        f"SELECT target_id, dimension, label, bot, sum(visits) FROM ({_RAW}) raw GROUP BY 1, 2, 3, 4",
        """SELECT target_id, dimension, label, bot, sum(visits)
             FROM (SELECT target_id, dimension, label, bot, visits FROM target_rollups
                    UNION ALL
                   SELECT target_id, dimension, label, bot, visits FROM target_days) both_ages
            GROUP BY 1, 2, 3, 4""",
    ),
    "account days": (
        f"""SELECT user_id, dimension, label, bot, (at AT TIME ZONE 'UTC')::date, sum(visits)
              FROM ({_RAW} UNION ALL SELECT target_id, 'target', target_id::text, bot, at, 1 FROM visits) raw
              JOIN ({_OWNED}) owned USING (target_id) GROUP BY 1, 2, 3, 4, 5""",
        "SELECT user_id, dimension, label, bot, day, sum(visits) FROM current_account_days GROUP BY 1, 2, 3, 4, 5",
    ),
    "account quarters": (
        """SELECT user_id, dimension, label, bot, day, sum(visits) FROM current_account_days
            WHERE day > (now() - interval '390 days')::date GROUP BY 1, 2, 3, 4, 5""",
        """SELECT user_id, dimension, label, bot, (at AT TIME ZONE 'UTC')::date AS day, sum(visits)
             FROM current_account_rollups GROUP BY 1, 2, 3, 4, 5
           HAVING (min(at) AT TIME ZONE 'UTC')::date > (now() - interval '390 days')::date""",
    ),
}
_STORED = {
    "busy days": (
        """SELECT target_id, dimension, label, bot, (at AT TIME ZONE 'UTC')::date, sum(visits) FROM target_rollups
            WHERE at >= date_trunc('day', now() - interval '390 days') AND dimension <> ''
              AND target_id IN (SELECT target_id FROM busy_days)
            GROUP BY 1, 2, 3, 4, 5""",
        """SELECT target_id, d.key, l.key, bot, day, l.value::bigint
             FROM busy_days, jsonb_each(labels) d, jsonb_each_text(d.value) l
            WHERE day >= date_trunc('day', now() - interval '390 days')""",
    ),
    "totals": (
        "SELECT target_id, count(*), count(*)::text FROM visits WHERE NOT bot GROUP BY 1",
        "SELECT target_id, clicks, statistics ->> 'clicks' FROM totals WHERE clicks > 0",
    ),
    "statistics": (
        "SELECT target_id, data::text FROM statistics",
        "SELECT target_id, statistics::text FROM totals",
    ),
}


def _differences(pairs: dict[str, tuple[str, str]]) -> str:
    """Return a query for the rows of one side that the other side lacks. It has no rows if all agree."""
    return " UNION ALL ".join(
        f"SELECT '{name}' AS compared, row::text FROM (({one} EXCEPT {other}) UNION ALL ({other} EXCEPT {one})) row"
        for name, (one, other) in pairs.items()
    )


# While visits are pending, and after they are rolled up.
PENDING_DIFFERENCES = _differences(_PAIRS)
ROLL_UP = "SELECT roll_up_pending(1000000)"
DIFFERENCES = _differences(_PAIRS | _STORED)


def differences(query: Callable[[str], list[Any]]) -> list[Any]:
    """Roll up the pending visits. Return what did not agree before, or does not agree after."""
    found = query(PENDING_DIFFERENCES)
    query(ROLL_UP)
    return found + query(DIFFERENCES)
