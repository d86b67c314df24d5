"""Comparison of the rollups and totals with the raw visits."""

from linkmgr.visits.dimensions import BY_NAME

_LABELS = ", ".join(f"('{name}', coalesce({name}, 'Unknown'))" for name in BY_NAME)
_DIMENSIONS = f"LATERAL (VALUES ('', ''), {_LABELS}) AS dimensions (dimension, label)"
_UNITS = """
    LATERAL (VALUES ('all', '-infinity'::timestamptz), ('day', date_trunc('day', at, 'UTC')),
                    ('quarter', date_bin('15 minutes', at, 'epoch'))
            ) AS units (unit, start)
"""
# The label 'Unknown' is not stored: it is the rest.
_RAW = f"SELECT tracked_id, dimension, label, bot, at, 1 AS visits FROM visits, {_DIMENSIONS} WHERE label <> 'Unknown'"
_UNKNOWN = f"SELECT tracked_id, dimension, label, 1 FROM visits, {_DIMENSIONS} WHERE label = 'Unknown' AND NOT bot"
_OWNED = "SELECT id AS tracked_id, user_id FROM links UNION ALL SELECT id, user_id FROM qrs"
# The dimensions that the sums of all days always have.
_KEPT = "(dimension = '' OR NOT bot AND dimension IN ('country', 'referrer', 'browser', 'os', 'kind', 'variant'))"
# The rollups of links and QR codes as rows.
TRACKED = """
    (SELECT tracked_id, unit, at, bot, '' AS dimension, '' AS label, visits FROM tracked_rollups
      UNION ALL
     SELECT tracked_id, unit, at, bot, dimension, key, value::bigint
       FROM tracked_rollups, jsonb_each(labels) AS dimensions (dimension, numbers), jsonb_each_text(numbers)) tracked
"""
# Rollups by day and visitors for visits that were moved to other days by an UPDATE.
FOLLOW_VISITS = f"""
    WITH days AS (
        SELECT user_id, tracked_id, bot, date_trunc('day', at, 'UTC') AS at, count(*) AS visits
          FROM visits JOIN ({_OWNED}) owned USING (tracked_id)
         GROUP BY 1, 2, 3, 4),
    targets AS (
        INSERT INTO account_targets (user_id, target, at, bot, visits)
        SELECT user_id, tracked_id, at, bot, visits FROM days
        ON CONFLICT DO NOTHING),
    totals AS (
        INSERT INTO account_totals (user_id, at, bot, visits)
        SELECT user_id, at, bot, sum(visits) FROM days GROUP BY 1, 2, 3
        ON CONFLICT DO NOTHING),
    seen AS (
        UPDATE visitors v
           SET seen = (SELECT max(timezone('UTC', at)::date) FROM visits
                        WHERE tracked_id = v.tracked_id AND visitor = v.visitor AND NOT bot))
    SELECT count(*) FROM days
"""
_PAIRS = {
    "tracked": (
        f"""SELECT tracked_id, dimension, label, bot, unit, start, sum(visits)
              FROM ({_RAW}) raw, {_UNITS}
             WHERE (start >= now() - interval '390 days' OR unit <> 'quarter')
               AND (unit = 'all' AND {_KEPT}
                    OR unit <> 'all' AND EXISTS (SELECT FROM tracked_rollups r
                                WHERE r.tracked_id = raw.tracked_id AND r.unit = 'day' AND r.bot = raw.bot
                                  AND r.at = date_trunc('day', raw.at, 'UTC')))
             GROUP BY 1, 2, 3, 4, 5, 6""",
        f"""SELECT tracked_id, dimension, label, bot, unit, at, sum(visits) FROM {TRACKED}
             WHERE (at >= now() - interval '390 days' OR unit <> 'quarter') AND dimension <> 'social'
               AND (unit <> 'all' OR {_KEPT})
             GROUP BY 1, 2, 3, 4, 5, 6""",
    ),
    "account": (
        f"""SELECT user_id, dimension, label, bot, unit, start, sum(visits)
              FROM ({_RAW} UNION ALL SELECT tracked_id, 'target', tracked_id::text, bot, at, 1 FROM visits) raw
              JOIN ({_OWNED}) owned USING (tracked_id), {_UNITS}
             WHERE unit <> 'all' AND (start >= now() - interval '390 days' OR unit = 'day')
             GROUP BY 1, 2, 3, 4, 5, 6""",
        """SELECT user_id, dimension, label, bot, unit, start, number
             FROM account_sums,
                  LATERAL (SELECT 'day', at, visits
                            UNION ALL
                           SELECT 'quarter', at + n * interval '15 minutes', quarters[n]
                             FROM generate_subscripts(quarters, 1) AS n) AS units (unit, start, number)
            WHERE number IS NOT NULL
              AND (start >= now() - interval '390 days' OR unit = 'day')""",
    ),
    "totals": (
        "SELECT tracked_id, count(*) FROM visits WHERE NOT bot GROUP BY 1",
        "SELECT tracked_id, clicks FROM totals WHERE clicks > 0",
    ),
    "top labels": (
        f"""SELECT tracked_id, dimension, label, visits
              FROM (SELECT tracked_id, dimension, label, sum(visits) AS visits,
                           row_number() OVER (PARTITION BY tracked_id, dimension
                                              ORDER BY sum(visits) DESC, label COLLATE "C") AS rank
                      FROM (SELECT tracked_id, dimension, label, visits FROM {TRACKED} WHERE unit = 'all' AND NOT bot
                             UNION ALL {_UNKNOWN}) labels
                     WHERE dimension IN ('country', 'referrer', 'browser', 'os', 'social', 'kind')
                     GROUP BY 1, 2, 3) ranked
             WHERE rank <= 10""",
        """SELECT tracked_id, d.key, l.key, l.value::bigint
             FROM totals, json_each(top_labels) d, json_each_text(d.value) l""",
    ),
}


# The rows of one side that the other side lacks. There are none if all agree.
DIFFERENCES = " UNION ALL ".join(
    f"SELECT '{name}' AS compared, row::text FROM (({one} EXCEPT {other}) UNION ALL ({other} EXCEPT {one})) row"
    for name, (one, other) in _PAIRS.items()
)
