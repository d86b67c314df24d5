"""Visits and their statistics."""

from collections.abc import Callable

from linkmgr.db.statements import Row, row, rows, run

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
# Labels per target and dimension. Clients can send any number of referrers and browsers, which would fill the disk, so
# all further labels are counted as OTHER.
MAX_LABELS = 1000
OTHER = "Other"
UNKNOWN = "Unknown"


def add(spool: str, start: int, stop: int, visits: str) -> bool:
    """Store the visits in bytes `start` to `stop` of a spool file, and return True. Skip visits beyond the monthly
    limit of their user. Bots have a counter of their own with the same limit, and change only `visits` and the rollups.

    If the file is not stored up to exactly `start`, store nothing and return False. So the statement can be repeated if
    its outcome is unknown. A file without a row in `visit_spools` is stored up to 0.

    `visits` is a JSON array of objects with target_id, user_id, at (seconds since the epoch), visitor (hexadecimal),
    country, referrer, browser, os, social, which may be null, bot, device, city and language. A file of the previous
    version lacks the last four. `visitor` is empty in a visit that must not be recognized.

    The trigger on `visits` queues them for the rollups: see linkmgr/repository/rollups.py.

    Concurrent statements for the same user wait at the row of `usage`. All of them lock rows in the same order, which
    prevents deadlocks.
    """
    return bool(_add(spool, start, stop, visits, report=False)["stored"])


def add_imported(spool: str, start: int, stop: int, visits: str) -> list[Row]:
    """Store visits as `add` does. Return the numbers of those beyond the monthly limit, as `visits` by `target_id` and
    `bot`."""
    return _add(spool, start, stop, visits, report=True)["refused"] or []


def _add(spool: str, start: int, stop: int, visits: str, *, report: bool) -> Row:
    [result] = rows(
        """
        WITH spool AS (
            INSERT INTO visit_spools AS s (name, stored)
            SELECT %(spool)s, %(stop)s::bigint
             WHERE %(start)s::bigint = 0 OR EXISTS (SELECT FROM visit_spools WHERE name = %(spool)s)
            ON CONFLICT (name) DO UPDATE SET stored = excluded.stored WHERE s.stored = %(start)s::bigint
            RETURNING name),
        batch AS (
            SELECT target_id, user_id, at, decode(visitor, 'hex') AS visitor, country, referrer, browser, os, social,
                   coalesce(bot, false) AS bot, coalesce(device, %(unknown)s) AS device,
                   coalesce(city, %(unknown)s) AS city, coalesce(language, %(unknown)s) AS language,
                   row_number() OVER (PARTITION BY user_id, coalesce(bot, false) ORDER BY at) AS number
              FROM json_to_recordset(%(visits)s) AS visits (
                   target_id bigint, user_id bigint, at float8, visitor text, country text, referrer text, browser text,
                   os text, social text, bot boolean, device text, city text, language text)
             WHERE EXISTS (SELECT FROM spool)),
        plan AS (
            SELECT id AS user_id, CASE WHEN NOT admin THEN nullif((limits ->> 'clicks')::bigint, 0) END AS max_clicks
              FROM accounts
             WHERE id IN (SELECT user_id FROM batch)),
        -- NULL as the limit means unlimited: least() and greatest() ignore it.
        month AS (
            INSERT INTO usage AS u (user_id, kind, total, last_added)
            SELECT user_id, CASE WHEN bot THEN 'bots ' ELSE 'visits ' END || to_char(now(), 'YYYY-MM') AS kind,
                   least(count(*), max_clicks), least(count(*), max_clicks)
              FROM batch
              JOIN plan USING (user_id)
             GROUP BY user_id, bot, max_clicks
             ORDER BY user_id, kind
            ON CONFLICT (user_id, kind) DO UPDATE
               SET (total, last_added) = (
                   SELECT u.total + added, added
                     FROM (SELECT greatest(least(excluded.last_added, max_clicks - u.total), 0) AS added
                             FROM plan
                            WHERE user_id = u.user_id) remaining)
            RETURNING user_id, kind LIKE 'bots %%' AS bot, last_added),
        counted AS (
            SELECT batch.* FROM batch JOIN month USING (user_id, bot) WHERE number <= last_added),
        -- least(): the clock of this host may be ahead of the database's.
        visits_added AS (
            INSERT INTO visits (target_id, at, visitor, country, referrer, browser, os, bot, device, city, language)
            SELECT target_id, least(to_timestamp(at), now()), visitor, country, referrer, browser, os, bot, device,
                   city, language
              FROM counted),
        people AS (
            SELECT * FROM counted WHERE NOT bot),
        visitors_added AS (
            INSERT INTO visitors (target_id, visitor)
            SELECT DISTINCT target_id, visitor FROM people WHERE visitor <> '' ORDER BY 1, 2
            ON CONFLICT DO NOTHING
            RETURNING target_id),
        totals_updated AS (
            INSERT INTO totals AS t (target_id, clicks, visitors)
            SELECT target_id, sum(clicks), sum(visitors)
              FROM (SELECT target_id, 1 AS clicks, 0 AS visitors FROM people
                     UNION ALL
                    SELECT target_id, 0, 1 FROM visitors_added) added
             GROUP BY target_id
             ORDER BY target_id
            ON CONFLICT (target_id) DO UPDATE
               SET clicks = t.clicks + excluded.clicks, visitors = t.visitors + excluded.visitors),
        labels AS (
            SELECT target_id, dimension, label, count(*) AS visits
              FROM people,
                   LATERAL (VALUES ('country', country), ('referrer', referrer), ('browser', browser), ('os', os),
                                   ('social', social), ('city', nullif(city, %(unknown)s))
                           ) AS dimensions (dimension, label)
             WHERE label IS NOT NULL
             GROUP BY target_id, dimension, label),
        -- A target has at most as many labels as clicks. Only the labels of popular targets must be looked up.
        new_labels AS MATERIALIZED (
            SELECT l.*
              FROM (SELECT labels.* FROM labels JOIN totals USING (target_id) WHERE clicks >= %(max_labels)s OFFSET 0) l
             WHERE NOT EXISTS (SELECT FROM target_breakdowns k
                                WHERE k.target_id = l.target_id AND k.dimension = l.dimension AND k.label = l.label)),
        full_dimensions AS MATERIALIZED (
            SELECT target_id, dimension
              FROM (SELECT DISTINCT target_id, dimension FROM new_labels) l
             WHERE (SELECT count(*) FROM (SELECT FROM target_breakdowns k
                                           WHERE k.target_id = l.target_id AND k.dimension = l.dimension
                                           LIMIT %(max_labels)s) existing) = %(max_labels)s),
        others AS MATERIALIZED (
            SELECT target_id, dimension, label, true AS is_other
              FROM new_labels JOIN full_dimensions USING (target_id, dimension)),
        breakdowns_updated AS (
            INSERT INTO target_breakdowns AS t (target_id, dimension, label, total)
            SELECT target_id, dimension, CASE WHEN is_other THEN %(other)s ELSE label END AS capped, sum(visits)
              FROM labels
              LEFT JOIN others USING (target_id, dimension, label)
             GROUP BY target_id, dimension, capped
             ORDER BY target_id, dimension, capped
            ON CONFLICT (target_id, dimension, label) DO UPDATE SET total = t.total + excluded.total)
        SELECT EXISTS (SELECT FROM spool) AS stored,
               CASE WHEN %(report)s
                    THEN (SELECT json_agg(refused)
                            FROM (SELECT target_id, bot, count(*) AS visits
                                    FROM batch
                                    JOIN month USING (user_id, bot)
                                   WHERE number > last_added
                                   GROUP BY target_id, bot) refused) END AS refused
        """,
        spool=spool,
        start=start,
        stop=stop,
        visits=visits,
        report=report,
        max_labels=MAX_LABELS,
        other=OTHER,
        unknown=UNKNOWN,
    )
    return result


def current_statistics(fetch: Callable[..., Row | None], target_id: int, clicks: int | None, stored: Row | None) -> Row:
    """Return the statistics of a target. `stored` are those of the last rollup. While visits are pending, which the
    number of clicks shows, they are computed here."""
    if not clicks:
        return NO_VISITS
    if stored is not None and stored["clicks"] == clicks:
        return stored
    record = fetch("SELECT data FROM statistics WHERE target_id = %(target_id)s", target_id=target_id)
    return record["data"] if record else NO_VISITS


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
