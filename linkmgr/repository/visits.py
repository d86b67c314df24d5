"""Visits and their statistics."""

from collections.abc import Callable

from linkmgr.db.statements import Row, row, run, run_repeatable

# Statistics of a link or a QR code without visits.
NO_VISITS: Row = {
    "clicks": 0,
    "uniqueClicks": 0,
    "topCountries": {},
    "topReferrers": {},
    "topBrowsers": {},
    "topOs": {},
    "socialCount": {"facebook": 0, "twitter": 0, "instagram": 0},
}
_TOP = 10  # labels
UNKNOWN = "Unknown"
TOTALS = ("clicks", "visitors", "counted", "top_labels")  # columns
_TOPS = {"topCountries": "country", "topReferrers": "referrer", "topBrowsers": "browser", "topOs": "os"}
# The totals of now, and the numbers of all labels.
_CURRENT = """
    SELECT clicks, visitors,
           (SELECT coalesce(jsonb_object_agg(dimension, labels), '{}')
              FROM (SELECT dimension, jsonb_object_agg(label, number) AS labels
                      FROM (SELECT dimension, label, sum(number) AS number
                              FROM (SELECT dimension, l.key AS label, l.value::bigint AS number
                                      FROM tracked_rollups r,
                                           LATERAL (VALUES ('country', country), ('referrer', referrer),
                                                           ('browser', browser), ('os', os), ('social', social)
                                                   ) AS labels (dimension, numbers),
                                           jsonb_each_text(numbers) l
                                     WHERE r.tracked_id = totals.tracked_id AND unit = 'all' AND NOT bot
                                     UNION ALL
                                    SELECT dimension, label, 1
                                      FROM pending_labels p
                                     WHERE p.tracked_id = totals.tracked_id AND NOT bot) counted
                             GROUP BY dimension, label) sums
                     GROUP BY dimension) per_dimension) AS labels
      FROM totals
     WHERE tracked_id = %(tracked_id)s
"""


def add(spool: str, start: int, stop: int, visits: str) -> bool:
    """Store the visits in bytes `start` to `stop` of a spool file, and return True. Skip visits beyond the monthly
    limit of their user. Bots have a counter of their own with the same limit, and change only `visits` and the rollups.

    If the file is not stored up to exactly `start`, store nothing and return False. So the statement can be repeated if
    its outcome is unknown. A file without a row in `visit_spools` is stored up to 0.

    `visits` is a JSON array of objects with tracked_id, user_id, at (seconds since the epoch), visitor (hexadecimal),
    country, referrer, browser, os, social, which may be null, bot, device, city and language. `visitor` is empty in a
    visit that must not be recognized.

    The visits are pending until they are in the rollups: see linkmgr/repository/rollups.py.

    Concurrent statements for the same user wait at the row of `usage_parts`. All of them lock rows in the same order,
    which prevents deadlocks.
    """
    return bool(_add(spool, start, stop, visits, report=False)["stored"])


def add_imported(spool: str, start: int, stop: int, visits: str) -> list[Row]:
    """Store visits as `add` does. Return the numbers of those beyond the monthly limit, as `visits` by `tracked_id` and
    `bot`."""
    return _add(spool, start, stop, visits, report=True)["refused"] or []


def _add(spool: str, start: int, stop: int, visits: str, *, report: bool) -> Row:
    result = run_repeatable(
        """
        -- least(): the clock of this host may be ahead of the database's.
        WITH spool AS (
            INSERT INTO visit_spools AS s (name, stored)
            SELECT %(spool)s, %(stop)s::bigint
             WHERE %(start)s::bigint = 0 OR EXISTS (SELECT FROM visit_spools WHERE name = %(spool)s)
            ON CONFLICT (name) DO UPDATE SET stored = excluded.stored WHERE s.stored = %(start)s::bigint
            RETURNING name),
        batch AS (
            SELECT tracked_id, user_id, least(to_timestamp(at), now()) AS at, decode(visitor, 'hex') AS visitor,
                   country, referrer, browser, os, social, bot, device, city, language,
                   row_number() OVER (PARTITION BY user_id, bot ORDER BY at) AS number
              FROM json_to_recordset(%(visits)s) AS visits (
                   tracked_id bigint, user_id bigint, at float8, visitor text, country text, referrer text,
                   browser text, os text, social text, bot boolean, device text, city text, language text)
             WHERE EXISTS (SELECT FROM spool)),
        plan AS (
            SELECT id AS user_id, CASE WHEN NOT admin THEN nullif((limits ->> 'clicks')::bigint, 0) END AS max_clicks
              FROM accounts
             WHERE id IN (SELECT user_id FROM batch)),
        -- NULL as the limit means unlimited: least() and greatest() ignore it.
        month AS (
            INSERT INTO usage_parts AS u (user_id, kind, total, last_added)
            SELECT user_id, CASE WHEN bot THEN 'bots ' ELSE 'visits ' END || to_char(now(), 'YYYY-MM') AS kind,
                   least(count(*), max_clicks), least(count(*), max_clicks)
              FROM batch
              JOIN plan USING (user_id)
             GROUP BY user_id, bot, max_clicks
             ORDER BY user_id, kind
            ON CONFLICT (user_id, kind, part) DO UPDATE
               SET (total, last_added) = (
                   SELECT u.total + added, added
                     FROM (SELECT greatest(least(excluded.last_added, max_clicks - u.total), 0) AS added
                             FROM plan
                            WHERE user_id = u.user_id) remaining)
            RETURNING user_id, kind LIKE 'bots %%' AS bot, last_added),
        counted AS (
            SELECT batch.* FROM batch JOIN month USING (user_id, bot) WHERE number <= last_added),
        visits_added AS (
            INSERT INTO visits (tracked_id, at, visitor, country, referrer, browser, os, bot, device, city, language)
            SELECT tracked_id, at, visitor, country, referrer, browser, os, bot, device, city, language FROM counted),
        pending_added AS (
            INSERT INTO pending_visits (user_id, tracked_id, at, bot, country, city, referrer, browser, os, device,
                                        language, social)
            SELECT user_id, tracked_id, at, bot, country, city, referrer, browser, os, device, language,
                   CASE WHEN NOT bot THEN social END
              FROM counted),
        visitors_added AS (
            INSERT INTO visitors (tracked_id, visitor)
            SELECT DISTINCT tracked_id, visitor FROM counted WHERE NOT bot AND visitor <> '' ORDER BY 1, 2
            ON CONFLICT DO NOTHING
            RETURNING tracked_id),
        totals_updated AS (
            INSERT INTO totals AS t (tracked_id, clicks, visitors)
            SELECT tracked_id, sum(clicks), sum(visitors)
              FROM (SELECT tracked_id, CASE WHEN bot THEN 0 ELSE 1 END AS clicks, 0 AS visitors FROM counted
                     UNION ALL
                    SELECT tracked_id, 0, 1 FROM visitors_added) added
             GROUP BY tracked_id
             ORDER BY tracked_id
            ON CONFLICT (tracked_id) DO UPDATE
               SET clicks = t.clicks + excluded.clicks, visitors = t.visitors + excluded.visitors)
        SELECT EXISTS (SELECT FROM spool) AS stored,
               CASE WHEN %(report)s
                    THEN (SELECT json_agg(refused)
                            FROM (SELECT tracked_id, bot, count(*) AS visits
                                    FROM batch
                                    JOIN month USING (user_id, bot)
                                   WHERE number > last_added
                                   GROUP BY tracked_id, bot) refused) END AS refused
        """,
        spool=spool,
        start=start,
        stop=stop,
        visits=visits,
        report=report,
    )
    assert result is not None
    return result


def statistics(fetch: Callable[..., Row | None], tracked_id: int, totals: Row) -> Row:
    """Return the statistics object of the specification. `totals` has the columns TOTALS, which are None for a
    link or QR code without visits. While visits are pending, the most frequent labels are those of now."""
    if not totals["clicks"]:
        return NO_VISITS
    if totals["clicks"] == totals["counted"]:
        return _statistics(totals, totals["top_labels"])
    current = fetch(_CURRENT, tracked_id=tracked_id)
    if current is None:  # deleted meanwhile
        return NO_VISITS
    tops = {
        dimension: dict(sorted(labels.items(), key=lambda item: (-item[1], item[0]))[:_TOP])
        for dimension, labels in current["labels"].items()
    }
    return _statistics(current, tops)


def _statistics(totals: Row, tops: dict[str, dict[str, int]]) -> Row:
    social = tops.get("social", {})
    return {
        "clicks": totals["clicks"],
        "uniqueClicks": totals["visitors"],
        **{
            name: {label: str(number) for label, number in tops.get(dimension, {}).items()}
            for name, dimension in _TOPS.items()
        },
        "socialCount": {network: social.get(network, 0) for network in NO_VISITS["socialCount"]},
    }


def stored_bytes(spool: str) -> int:
    """Return the number of bytes of a spool file that are stored."""
    record = row("SELECT stored FROM visit_spools WHERE name = %(spool)s", spool=spool)
    return int(record["stored"]) if record else 0


def delete_spool(spool: str) -> None:
    run("DELETE FROM visit_spools WHERE name = %(spool)s", spool=spool)


def create_partitions() -> None:
    """Create the partitions of `visits` for this month and the next two."""
    run("SELECT create_partitions()")


def create_partitions_for(visits: str) -> None:
    """Create the missing partitions for the visits, a JSON array as in `add`."""
    run(
        """
        SELECT create_partition(month)
          FROM (SELECT DISTINCT date_trunc('month', least(to_timestamp(at), now()), 'UTC') AS month
                  FROM json_to_recordset(%(visits)s) AS visits (at float8)
                 WHERE at IS NOT NULL) months
        """,
        visits=visits,
    )
