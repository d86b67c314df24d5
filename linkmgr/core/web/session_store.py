"""Sign-in links and browser sessions."""

from typing import Any

from limits import parse

from linkmgr.core import keys
from linkmgr.core.database.statements import Row, row, rows, run, run_repeatable
from linkmgr.core.errors import existing
from linkmgr.core.settings import settings

MAX_SESSIONS = 100  # of a user; the next sign-in with a password ends the oldest


def new_link(user_id: int) -> str:
    token = keys.new_token()
    added = run(
        """
        WITH expired AS (DELETE FROM sessions WHERE is_link AND created < now() - interval '1 hour')
        INSERT INTO sessions (digest, user_id, is_link)
        SELECT %(digest)s, id, true FROM users WHERE id = %(user_id)s FOR KEY SHARE
        RETURNING user_id
        """,
        user_id=user_id,
        digest=keys.digest(token),
    )
    existing(added, "user")
    return f"{settings().base_url}/login/{token}"


def is_usable(digest: bytes) -> bool:
    link = row(
        "SELECT FROM sessions WHERE digest = %(digest)s AND is_link AND created > now() - interval '1 hour'",
        digest=digest,
    )
    return link is not None


def consume_link(digest: bytes, **begun: Any) -> int | None:
    """Begin the session of a sign-in link, with its digest as `session`, its `browser` and its
    `system`. Return the user id, or None if the link cannot be used. Exactly one of several
    concurrent attempts succeeds."""
    session = run(
        """
        UPDATE sessions
           SET digest = %(session)s, is_link = false, by_link = true, created = now(),
               browser = %(browser)s, system = %(system)s
         WHERE digest = %(digest)s AND is_link AND created > now() - interval '1 hour'
        RETURNING user_id
        """,
        digest=digest,
        **begun,
    )
    return None if session is None else int(session["user_id"])


def add_session(user_id: int, **begun: Any) -> None:
    run(
        """
        WITH expired AS (DELETE FROM sessions WHERE created < now() - interval '30 days'),
        oldest AS (
            DELETE FROM sessions
             WHERE digest IN (SELECT digest FROM sessions
                               WHERE user_id = %(user_id)s AND NOT is_link
                               ORDER BY created DESC OFFSET %(others)s))
        INSERT INTO sessions (digest, user_id, browser, system)
        VALUES (%(session)s, %(user_id)s, %(browser)s, %(system)s)
        """,
        user_id=user_id,
        others=MAX_SESSIONS - 1,
        **{"browser": "", "system": ""} | begun,
    )


def find_session(session: bytes) -> Row | None:
    """Return the user of a session, or None if it is unknown or older than 30 days. `by_link` is
    True within an hour of the sign-in link that created the session, and `lacks_password` until the
    user sets a first password. `count` is the number of pages of the user in the current window,
    with this one, and `seconds` the time until the window ends. `used` has the number of rows by
    table. Visits are not counted since `uncounted_since`, if the plan counts no more in this month.
    Administrators have the numbers of links that are `reported` and `blocked`."""
    return run_repeatable(
        """
        WITH session AS (
            SELECT user_id, email, key_off, admin, suspended <> 'no' AS suspended, timezone, plan,
                   limits, domain, (SELECT problem FROM domains d
                             WHERE d.user_id = accounts.id
                               AND d.domain = accounts.domain) AS domain_problem,
                   by_link AND created > now() - interval '1 hour' AS by_link,
                   password_hash = '' AS lacks_password,
                   (SELECT full_since FROM visit_months m
                     WHERE m.user_id = accounts.id AND month = this_month()
                       AND NOT (bot OR imported)
                       AND total >= max_clicks) AS uncounted_since,
                   CASE WHEN admin
                        THEN (SELECT count(DISTINCT link_id) FROM reports WHERE kind = 'report'
                                 AND EXISTS (SELECT FROM links
                                              WHERE id = link_id)) END AS reported,
                   CASE WHEN admin
                        THEN (SELECT count(*) FROM reports
                               WHERE kind = 'link' AND ended IS NULL) END AS blocked,
                   (SELECT coalesce(json_object_agg(counted, total), '{}') FROM usage
                     WHERE usage.user_id = accounts.id) AS used
              FROM sessions
              JOIN accounts ON accounts.id = user_id
             WHERE digest = %(session)s AND NOT is_link AND created > now() - interval '30 days')
        SELECT session.*, count,
               ceil(extract(epoch FROM until - clock_timestamp()))::integer AS seconds
          FROM session
          LEFT JOIN count_in_window('pages:' || user_id, 1, %(window)s) ON true
        """,
        session=session,
        window=parse(settings().page_rate_limit).get_expiry(),
    )


def delete_session(session: bytes) -> None:
    run("DELETE FROM sessions WHERE digest = %(session)s", session=session)


def sessions(user_id: int, *, session: bytes) -> list[Row]:
    """Return the sessions of a user: first `session`, which is marked as current, then the latest.
    `id` is the digest in hexadecimal digits."""
    return rows(
        """
        SELECT encode(digest, 'hex') AS id, browser, system, created,
               digest = %(session)s AS current
          FROM sessions
         WHERE user_id = %(user_id)s AND NOT is_link AND created > now() - interval '30 days'
         ORDER BY current DESC, sessions.created DESC
         LIMIT %(limit)s
        """,
        user_id=user_id,
        session=session,
        limit=MAX_SESSIONS,
    )


def end_sessions(user_id: int, *, session: bytes, others: bool) -> bool:
    ended = run(
        """
        DELETE FROM sessions
         WHERE user_id = %(user_id)s AND (digest = %(session)s) <> %(others)s::boolean
           AND NOT is_link
        RETURNING user_id
        """,
        user_id=user_id,
        session=session,
        others=others,
    )
    return ended is not None


def find_credentials(email: str) -> Row:
    """Return the id and password hash of the account with this e-mail address or name, both None if
    it is unknown, and the bucket that counts its wrong passwords, with a digest, because e-mail
    addresses must not be in counters."""
    account = row(
        """
        SELECT id, password_hash,
               'account:' || encode(sha256(convert_to(lower(coalesce(email, %(email)s)), 'UTF8')),
                                    'hex') AS bucket
          FROM (SELECT 1) always
          LEFT JOIN users ON lower(email) = lower(%(email)s)
                          OR (%(email)s NOT LIKE '%%@%%' AND lower(username) = lower(%(email)s))
        """,
        email=email,
    )
    assert account is not None
    return account
