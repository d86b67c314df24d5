"""The checks of the targets of links: which are due, and their results. One process at a time does
them."""

import orjson

from linkmgr.core.database.statements import Row, row, rows, run, run_unsynced
from linkmgr.core.errors import existing

MAX_DUE = 200  # links of a batch
LEASE_SECONDS = 150  # longer than a batch


def last_id() -> int:
    """Return the last id of a link. Before the first one, the sequence has the next one."""
    sequence = row("SELECT last_value - (NOT is_called)::integer AS id FROM tracked_ids")
    assert sequence
    return int(sequence["id"])


def begin_turn(last: int) -> bool:
    """Return True if there may be something to do, also with links up to an id, and no other
    process does it."""
    begun = run_unsynced(
        """
        UPDATE service SET checking_until = now() + make_interval(secs => %(seconds)s)
         WHERE checking_until < now()
           AND (checks_until < %(last)s OR EXISTS (SELECT FROM link_checks WHERE due <= now()))
        RETURNING 1
        """,
        seconds=LEASE_SECONDS,
        last=last,
    )
    return begun is not None


def end_turn(seconds: int) -> None:
    """Let the next batch begin later, so that hosts get no more requests from several processes."""
    run_unsynced(
        "UPDATE service SET checking_until = now() + make_interval(secs => %(seconds)s)", seconds=seconds
    )


def add_links(last: int) -> None:
    """Add the next links up to an id. Links with lower ids must have been committed."""
    run_unsynced(
        """
        WITH next AS MATERIALIZED (
            SELECT id, user_id FROM links
             WHERE id > (SELECT checks_until FROM service) AND id <= %(last)s
             ORDER BY id
             LIMIT %(limit)s),
        advanced AS (
            UPDATE service
               SET checks_until = CASE (SELECT count(*) FROM next)
                                  WHEN %(limit)s THEN (SELECT max(id) FROM next)
                                  ELSE %(last)s END
             WHERE checks_until < %(last)s)
        INSERT INTO link_checks (link_id, user_id) SELECT id, user_id FROM next ON CONFLICT
            DO NOTHING
        """,
        last=last,
        limit=MAX_DUE,
    )


def due() -> list[Row]:
    """Return the links whose check has been due longest. Those in the bin have no `url`. `target`
    is the one that failed the last check."""
    return rows(
        """
        SELECT c.link_id, c.user_id, due::text AS lease, url, l.title = ''
           AND c.title = '' AS wants_title, target,
               passed,
               targets_of(l) AS targets,
               coalesce((SELECT admin FROM users WHERE users.id = c.user_id), false) AS admin
          FROM (SELECT * FROM link_checks WHERE due <= now() ORDER BY due LIMIT %(limit)s) c
          LEFT JOIN links l ON l.id = link_id
         ORDER BY due
        """,
        limit=MAX_DUE,
    )


def last_ok(hosts: list[str]) -> list[Row]:
    """Return the link that responded last, of the MAX_DUE that were checked last, unless it is on
    one of the hosts."""
    return rows(
        """
        SELECT c.link_id, c.user_id, due::text AS lease, url, false AS wants_title, target, passed,
               targets_of(l) AS targets,
               coalesce((SELECT admin FROM users WHERE users.id = c.user_id), false) AS admin
          FROM (SELECT * FROM link_checks ORDER BY due DESC LIMIT %(limit)s) c
          JOIN links l ON l.id = link_id
         WHERE state = 'ok' AND host_of(url) <> ALL (%(hosts)s::text[])
         ORDER BY due DESC
         LIMIT 1
        """,
        limit=MAX_DUE,
        hosts=hosts,
    )


def check_again(user_id: int, link_id: int) -> None:
    """Let all targets of a link be checked in the next batch, also if it was not checked yet."""
    link = run(
        """
        INSERT INTO link_checks AS c (link_id, user_id)
        SELECT id, user_id FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s
            ON CONFLICT (link_id) DO UPDATE SET due = clock_timestamp(), passed = 0
        RETURNING link_id
        """,
        user_id=user_id,
        link_id=link_id,
    )
    existing(link, "link")


def postpone(seconds: dict[int, float]) -> None:
    """Check links a number of seconds later, and no longer those that were deleted."""
    if not seconds:
        return
    run_unsynced(
        """
        WITH later AS MATERIALIZED (
            SELECT link_id, seconds, owner_of_link(link_id) IS NULL AS is_deleted
              FROM unnest(%(ids)s::bigint[], %(seconds)s::float8[]) AS later (link_id, seconds)),
        deleted AS (
            DELETE FROM link_checks WHERE link_id IN (SELECT link_id FROM later WHERE is_deleted))
        UPDATE link_checks c SET due = now() + make_interval(secs => seconds)
          FROM later
         WHERE c.link_id = later.link_id AND NOT is_deleted
        """,
        ids=[*seconds],
        seconds=[*seconds.values()],
    )


def store(results: list[Row], days: int) -> None:
    """Store results, unless the targets have changed since the check began. A link is broken after
    two failures of the same target at least a day apart, and then checked again after an hour, six
    hours, a day, and the days between all checks. The owner gets an event then, and another one
    when it no longer is. A null keeps what an earlier turn of the check has stored."""
    run_unsynced(
        """
        WITH results AS MATERIALIZED (
            SELECT c.link_id, lease, outcome, r.reason, r.target, r.title, r.passed,
                   c.state AS before,
                   CASE outcome WHEN 'failed'
                          THEN coalesce(CASE c.target WHEN r.target THEN c.failed END, now())
                        END AS failed,
                   CASE WHEN outcome IS DISTINCT FROM 'failed' THEN coalesce(outcome, c.state)
                        WHEN c.target = r.target AND c.failed <= now() - interval '1 day'
                          THEN 'broken'
                        WHEN c.target <> r.target AND c.state = 'broken' THEN 'ok'
                        ELSE c.state END AS state,
                   c.broken AS checks
              FROM json_to_recordset(%(results)s) AS r (link_id bigint, lease timestamptz,
                                                        outcome text, reason text,
                                                        target text, title text, passed integer)
              JOIN link_checks c USING (link_id)),
        stored AS (
            UPDATE link_checks c
               SET checked = now(), state = r.state, failed = r.failed, passed = r.passed,
                   broken = CASE WHEN r.state <> 'broken' THEN 0
                                 ELSE checks + (outcome IS NOT NULL)::integer END,
                   reason = coalesce(r.reason, c.reason), target = coalesce(r.target, c.target),
                   title = coalesce(nullif(r.title, ''), c.title),
                   due = CASE WHEN r.passed > 0 THEN now()
                              WHEN outcome = 'failed' AND r.state <> 'broken'
                                THEN r.failed + interval '1 day'
                              WHEN outcome = 'failed' AND checks < 3
                              THEN now() + ('{1 hour,6 hours,1 day}'::interval[])[checks + 1]
                              ELSE now() + make_interval(days => %(days)s) END
              FROM results r
             WHERE c.link_id = r.link_id AND c.due = lease
            RETURNING c.user_id, c.link_id, before, c.state)
        INSERT INTO outbox (user_id, type, object_id)
        SELECT user_id, CASE state WHEN 'broken' THEN 'link.broken' ELSE 'link.recovered' END,
               link_id
          FROM stored
         WHERE (before = 'broken') <> (state = 'broken') AND has_webhooks(user_id)
         ORDER BY link_id
        """,
        results=orjson.dumps(results).decode(),
        days=days,
    )
