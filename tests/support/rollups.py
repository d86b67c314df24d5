"""Comparison of the rollups and totals with the raw visits."""

from collections.abc import Callable
from typing import Any

from linkmgr.repository import rollups

_DIMENSIONS = """
    LATERAL (VALUES ('', ''), ('country', country), ('city', city), ('referrer', referrer), ('browser', browser),
                    ('os', os), ('device', device), ('language', language)) AS dimensions (dimension, label)
"""
_UNITS = """
    LATERAL (VALUES ('all', '-infinity'::timestamptz), ('day', date_trunc('day', at, 'UTC')),
                    ('quarter', date_bin('15 minutes', at, 'epoch'))) AS units (unit, start)
"""
_RAW = f"SELECT tracked_id, dimension, label, bot, at, 1 AS visits FROM visits, {_DIMENSIONS}"
_OWNED = "SELECT id AS tracked_id, user_id FROM links UNION ALL SELECT id, user_id FROM qrs"
# The rollups of links and QR codes as rows, with the pending visits.
TRACKED = f"""
    (SELECT tracked_id, unit, at, bot, '' AS dimension, '' AS label, visits FROM tracked_rollups
      UNION ALL
     SELECT tracked_id, unit, at, bot, dimension, key, value::bigint
       FROM tracked_rollups,
            LATERAL (VALUES ('country', country), ('city', city), ('referrer', referrer), ('browser', browser),
                            ('os', os), ('device', device), ('language', language), ('social', social)
                    ) AS columns (dimension, numbers),
            jsonb_each_text(numbers)
      UNION ALL
     SELECT tracked_id, unit, start, bot, dimension, label, 1 FROM pending_labels, {_UNITS}
      WHERE dimension <> 'target') tracked
"""
ACCOUNT = f"""
    (SELECT user_id, dimension, unit, at, label, bot, visits FROM account_rollups
      UNION ALL
     SELECT user_id, dimension, unit, start, label, bot, 1 FROM pending_labels, {_UNITS}
      WHERE unit <> 'all' AND dimension <> 'social') account
"""
_PAIRS = {
    "tracked": (
        f"""SELECT tracked_id, dimension, label, bot, unit, start, sum(visits)
              FROM ({_RAW}) raw, {_UNITS}
             WHERE (at >= now() - interval '390 days' OR unit <> 'quarter')
               AND (unit <> 'all' OR dimension NOT IN ('device', 'language')) GROUP BY 1, 2, 3, 4, 5, 6""",
        f"""SELECT tracked_id, dimension, label, bot, unit, at, sum(visits) FROM {TRACKED}
             WHERE (at >= now() - interval '390 days' OR unit <> 'quarter') AND dimension <> 'social'
               AND (unit <> 'all' OR dimension NOT IN ('device', 'language'))
             GROUP BY 1, 2, 3, 4, 5, 6""",
    ),
    "account": (
        f"""SELECT user_id, dimension, label, bot, unit, start, sum(visits)
              FROM ({_RAW} UNION ALL SELECT tracked_id, 'target', tracked_id::text, bot, at, 1 FROM visits) raw
              JOIN ({_OWNED}) owned USING (tracked_id), {_UNITS}
             WHERE unit <> 'all' AND (at >= now() - interval '390 days' OR unit = 'day') GROUP BY 1, 2, 3, 4, 5, 6""",
        f"""SELECT user_id, dimension, label, bot, unit, at, sum(visits) FROM {ACCOUNT}
             WHERE at >= now() - interval '390 days' OR unit = 'day' GROUP BY 1, 2, 3, 4, 5, 6""",
    ),
}
_STORED = {
    "totals": (
        "SELECT tracked_id, count(*), count(*) FROM visits WHERE NOT bot GROUP BY 1",
        "SELECT tracked_id, clicks, counted FROM totals WHERE clicks > 0",
    ),
    "top labels": (
        f"""SELECT tracked_id, dimension, label, visits
              FROM (SELECT *, row_number() OVER (PARTITION BY tracked_id, dimension
                                                 ORDER BY visits DESC, label COLLATE "C") AS rank
                      FROM {TRACKED} WHERE unit = 'all' AND NOT bot
                       AND dimension IN ('country', 'referrer', 'browser', 'os', 'social')) ranked
             WHERE rank <= 10""",
        """SELECT tracked_id, d.key, l.key, l.value::bigint
             FROM totals, json_each(top_labels) d, json_each_text(d.value) l""",
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
ROLL_UP = (
    rollups.ROLL_UP.replace("%(limit)s", "1000000")
    .replace("%(max_labels)s", str(rollups.MAX_LABELS))
    .replace("%(other)s", f"'{rollups.OTHER}'::text")
)
DIFFERENCES = _differences(_PAIRS | _STORED)


def differences(query: Callable[[str], list[Any]]) -> list[Any]:
    """Roll up the pending visits. Return what did not agree before, or does not agree after."""
    found = query(PENDING_DIFFERENCES)
    query(ROLL_UP)
    return found + query(DIFFERENCES)
