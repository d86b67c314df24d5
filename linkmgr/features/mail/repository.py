import orjson

from linkmgr.core.database.expiry import older_than
from linkmgr.core.database.statements import Row, row, rows, run, run_one
from linkmgr.core.settings import settings

EXPIRING = (older_than("mailed", "sent", "60 days"),)  # what they are about has ended
MAX_BATCH = 500  # users


def enqueue(user_id: int, message: str, *, most: int, sealed: str, about: str | None = None) -> None:
    """Enqueue a message, unless the user does not want it, has got `most` of its kind within an
    hour, or has got one `about` the same."""
    run(
        """
        WITH first AS (
            INSERT INTO mailed (user_id, about)
            SELECT id, %(about)s::text FROM users
             WHERE id = %(user_id)s AND %(about)s::text IS NOT NULL AND %(message)s::text <> ALL (no_mail)
            ON CONFLICT DO NOTHING
            RETURNING user_id)
        INSERT INTO jobs (task, argument)
        SELECT 'mail', jsonb_build_object('user_id', u.id, 'message', %(message)s::text,
                                          'values', %(sealed)s::text, 'id', gen_random_uuid(),
                                          'enqueued', extract(epoch FROM now()))
          FROM users u,
               LATERAL count_in_window('mail:' || %(message)s::text || ':' || u.id, 1, 3600, %(most)s)
         WHERE id = %(user_id)s AND %(message)s::text <> ALL (no_mail)
           AND (%(about)s::text IS NULL OR EXISTS (SELECT FROM first))
        """,
        user_id=user_id,
        message=message,
        most=most,
        sealed=sealed,
        about=about,
    )


def enqueue_task(task: str, argument: Row) -> None:
    run(
        "INSERT INTO jobs (task, argument) VALUES (%(task)s, %(argument)s::jsonb)",
        task=task,
        argument=orjson.dumps(argument).decode(),
    )


def waiting(most: int) -> int:
    """Count the messages that wait, up to a number."""
    counted = run_one(
        "SELECT count(*) AS number FROM (SELECT FROM jobs WHERE task = 'mail' LIMIT %(most)s) jobs",
        most=most,
    )
    return int(counted["number"])


def recipient(user_id: int) -> Row | None:
    return row(
        "SELECT id, username, email, timezone, no_mail FROM users WHERE id = %(user_id)s", user_id=user_id
    )


def turn_off(user_id: int, message: str) -> None:
    run(
        """
        UPDATE users SET no_mail = no_mail || %(message)s::text
         WHERE id = %(user_id)s AND %(message)s::text <> ALL (no_mail)
        """,
        user_id=user_id,
        message=message,
    )


def choose(user_id: int, *, unwanted: list[str]) -> None:
    run(
        "UPDATE users SET no_mail = %(unwanted)s::text[] WHERE id = %(user_id)s",
        user_id=user_id,
        unwanted=unwanted,
    )


def confirm_email(user_id: int, *, before: str, email: str) -> bool:
    """Change an address, unless it is no longer `before`. One of several concurrent calls does."""
    changed = run(
        """
        WITH changed AS (
            UPDATE users SET email = %(email)s WHERE id = %(user_id)s AND email = %(before)s
            RETURNING id),
        mailed AS (  -- to the address of before
            DELETE FROM sessions
             WHERE user_id IN (SELECT id FROM changed) AND is_link AND NOT by_admin)
        SELECT id FROM changed
        """,
        user_id=user_id,
        before=before,
        email=email,
    )
    return changed is not None


def due(after: int) -> list[Row]:
    """Return what the next users behind an id may get a message about. Those who want the weekly
    report have in `about` what the last one was about. The last row has no `message` and the last
    id, or None if there are no more users."""
    return rows(
        """
        WITH batch AS MATERIALIZED (
            SELECT id, suspended, key_created, key_off, timezone, no_mail, max_clicks,
                   CASE WHEN NOT admin THEN nullif((limits ->> 'links')::bigint, 0) END AS max_links
              FROM accounts
             WHERE id > %(after)s
             ORDER BY id
             LIMIT %(limit)s),
        keys AS (
            SELECT b.id AS user_id, k.id, k.name,
                   least(expires, created + make_interval(days => %(lifetime)s)) AS expires
              FROM batch b
              JOIN api_keys k ON k.user_id = b.id
             UNION ALL
            SELECT id, 0, '', key_created + make_interval(days => %(lifetime)s)
              FROM batch
             WHERE NOT key_off),
        limits AS (
            SELECT b.id AS user_id, 'links' AS counted, max_links AS most
              FROM batch b,
                   LATERAL (SELECT sum(total) AS total FROM usage_parts u
                             WHERE u.user_id = b.id AND u.counted = 'links' AND max_links > 0) used
             WHERE total >= max_links
             UNION ALL
            SELECT b.id, 'visits', max_clicks
              FROM batch b
              JOIN visit_months m ON m.user_id = b.id AND month = this_month()
               AND NOT (bot OR imported) AND total >= max_clicks),
        due AS (
            SELECT user_id, 'key_expires' AS message, format('key %%s until %%s', id, expires) AS about,
                   json_build_object('key', name, 'expires', expires::text) AS values
              FROM keys
             WHERE expires BETWEEN now() AND now() + interval '7 days'
             UNION ALL
            SELECT user_id, 'plan_limit', format('%%s in %%s', counted, this_month()),
                   json_build_object('counted', counted, 'most', most)
              FROM limits)
        SELECT user_id, message, about, values, timezone
          FROM due
          JOIN batch b ON b.id = user_id
         WHERE suspended = 'no' AND message <> ALL (no_mail)
           AND NOT EXISTS (SELECT FROM mailed m WHERE m.user_id = due.user_id AND m.about = due.about)
         UNION ALL
        SELECT id, 'weekly_report', (SELECT max(about) FROM mailed WHERE user_id = id
                                        AND about LIKE 'week until %%'), NULL, timezone
          FROM batch
         WHERE suspended = 'no' AND 'weekly_report' <> ALL (no_mail)
         UNION ALL
        SELECT max(id), NULL, NULL, NULL, NULL FROM batch
        """,
        after=after,
        limit=MAX_BATCH,
        lifetime=settings().key_lifetime_days,
    )
