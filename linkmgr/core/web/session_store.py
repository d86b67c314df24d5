"""Sign-in links and browser sessions."""

from typing import Any

import psycopg2
from limits import parse

from linkmgr.core import keys
from linkmgr.core.database.lookups import public_row
from linkmgr.core.database.statements import Row, row, rows, run, run_one, run_repeatable
from linkmgr.core.errors import existing
from linkmgr.core.feature import has_feature
from linkmgr.core.settings import settings

MAX_SESSIONS = 100  # of a user; the next sign-in with a password ends the oldest


def new_link(user_id: int, *, by_admin: bool = True) -> str:
    """Return the URL of a new sign-in link. The session of one that an administrator made says so
    on every page."""
    token = keys.new_token()
    added = run(
        """
        WITH expired AS (DELETE FROM sessions WHERE is_link AND created < now() - interval '1 hour')
        INSERT INTO sessions (digest, user_id, is_link, by_admin)
        SELECT %(digest)s, id, true, %(by_admin)s FROM users WHERE id = %(user_id)s FOR KEY SHARE
        RETURNING user_id
        """,
        user_id=user_id,
        by_admin=by_admin,
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


def consume_link(digest: bytes, *, asks_code: bool, **begun: Any) -> Row | None:
    """Begin the session of a sign-in link, with its digest as `session`, its `browser`, `system`
    and `place`. Return the `user_id` and whether the session is `pending`, or None if the link
    cannot be used. Exactly one of several concurrent attempts succeeds."""
    return run(
        """
        UPDATE sessions
           SET digest = %(session)s, is_link = false, by_link = true, created = now(), used = now(),
               browser = %(browser)s, system = %(system)s, place = %(place)s,
               pending = %(asks_code)s AND has_codes(user_id)
         WHERE digest = %(digest)s AND is_link AND created > now() - interval '1 hour'
        RETURNING user_id, pending
        """,
        digest=digest,
        asks_code=asks_code,
        **begun,
    )


def add_session(user_id: int, *, asks_code: bool, **begun: Any) -> bool:
    """Return True if the session is pending: with `asks_code`, that of a user with one-time codes
    opens nothing until one is there, and ends after ten minutes."""
    session = run_one(
        """
        WITH expired AS (
            DELETE FROM sessions
             WHERE created < now() - interval '30 days'
                OR (pending AND created < now() - interval '10 minutes')),
        oldest AS (
            DELETE FROM sessions
             WHERE digest IN (SELECT digest
                                FROM (SELECT digest, row_number() OVER (PARTITION BY pending
                                                                        ORDER BY created DESC)
                                        FROM sessions
                                       WHERE user_id = %(user_id)s AND NOT is_link) own
                               WHERE row_number > %(others)s))
        INSERT INTO sessions (digest, user_id, browser, system, place, id_token, pending)
        VALUES (%(session)s, %(user_id)s, %(browser)s, %(system)s, %(place)s, %(id_token)s,
                %(asks_code)s AND has_codes(%(user_id)s))
        RETURNING pending
        """,
        user_id=user_id,
        asks_code=asks_code,
        others=MAX_SESSIONS - 1,
        **{"browser": "", "system": "", "place": "", "id_token": ""} | begun,
    )
    return bool(session["pending"])


def find_pending(session: bytes) -> int | None:
    """Return the user id of a session that waits for a one-time code, or None."""
    waiting = row(
        """
        SELECT user_id FROM sessions
         WHERE digest = %(session)s AND pending AND created > now() - interval '10 minutes'
        """,
        session=session,
    )
    return int(waiting["user_id"]) if waiting else None


def complete(session: bytes) -> None:
    """Open a session whose one-time code was right."""
    run(
        """
        UPDATE sessions SET pending = false, created = now(), used = now()
         WHERE digest = %(session)s AND pending AND created > now() - interval '10 minutes'
        """,
        session=session,
    )


def confirm(session: bytes) -> None:
    """Note that the user has just proved to be the one who signed in, with a factor or at the
    provider that has the identity. It counts for five minutes."""
    run("UPDATE sessions SET confirmed = now() WHERE digest = %(session)s", session=session)


def has_passkeys() -> bool:
    """Return True if any user has a passkey. The sign-in page is there without the database too."""
    try:
        return (
            public_row("SELECT FROM factors WHERE credential IS NOT NULL LIMIT 1", can_wait=False) is not None
        )
    except psycopg2.Error:
        return False


def find_session(session: bytes) -> Row | None:
    """Return the account that a session works in, or None if the session is unknown or older than
    30 days. The account is that of the person, or of another user in which the person has a `role`;
    `is_lost` is True if the person has lost that one. `suspended`, `timezone` and
    `is_administrator` are those of the person, and `others` the accounts in which the person has a
    role. `needs_factor` is True for an administrator, also in another account, where
    `is_administrator` is False. `by_link` is True within an hour of the sign-in link that created
    the session, and `confirmed` within five minutes of a confirmation. `is_idle` is True if no use
    of the last ten minutes has been noted. `factors` has the methods of those that the person has
    set up, and `has_identity` is True if the person has an account at the provider. `count` is the
    number of pages of the person in the current window, with this one, and `seconds` the time until
    the window ends. `used` has the number of rows by table. Visits are not counted since
    `uncounted_since`, if the plan counts no more in this month. Administrators have the numbers of
    links that are `reported` and `blocked`."""
    return run_repeatable(
        """
        WITH signed_in AS MATERIALIZED (
            SELECT s.user_id AS person_id, username AS person, email AS person_email, timezone,
                   suspended <> 'no' AS suspended, password_hash <> '' AS has_password,
                   by_link AND s.created > now() - interval '1 hour' AS by_link, by_admin,
                   coalesce(confirmed > now() - interval '5 minutes', false) AS confirmed,
                   used < now() - interval '10 minutes' AS is_idle,
                   ARRAY(SELECT method FROM factors f
                          WHERE f.user_id = s.user_id AND counter IS NOT NULL) AS factors,
                   EXISTS (SELECT FROM identities i
                            WHERE i.user_id = s.user_id AND issuer = %(issuer)s) AS has_identity,
                   role, coalesce(m.user_id, s.user_id) AS account_id,
                   p.admin AS needs_factor, p.admin AND role IS NULL AS is_administrator,
                   %(has_members)s AND account_id IS NOT NULL AND role IS NULL AS is_lost,
                   CASE WHEN %(has_members)s THEN (
                       SELECT json_agg(json_build_object('id', a.id, 'name', a.username,
                                                         'role', o.role) ORDER BY lower(a.username))
                         FROM members o
                         JOIN users a ON a.id = o.user_id AND a.suspended = 'no'
                        WHERE o.member_id = s.user_id) END AS others
              FROM sessions s
              JOIN users p ON p.id = s.user_id
              LEFT JOIN (SELECT user_id, member_id, role FROM members
                          WHERE (SELECT suspended FROM users WHERE id = user_id) = 'no') m
                     ON %(has_members)s AND m.user_id = account_id AND member_id = s.user_id
             WHERE s.digest = %(session)s AND NOT (is_link OR pending)
               AND s.created > now() - interval '30 days'),
        session AS (
            SELECT signed_in.*, id AS user_id, username AS account, email, key_off, admin, plan,
                   limits, domain, (SELECT problem FROM domains d
                             WHERE d.user_id = accounts.id
                               AND d.domain = accounts.domain) AS domain_problem,
                   (SELECT full_since FROM visit_months m
                     WHERE m.user_id = accounts.id AND month = this_month()
                       AND NOT (bot OR imported)
                       AND total >= max_clicks) AS uncounted_since,
                   CASE WHEN is_administrator
                        THEN (SELECT count(DISTINCT link_id) FROM reports WHERE kind = 'report'
                                 AND EXISTS (SELECT FROM links
                                              WHERE id = link_id)) END AS reported,
                   CASE WHEN is_administrator
                        THEN (SELECT count(*) FROM reports
                               WHERE kind = 'link' AND ended IS NULL) END AS blocked,
                   (SELECT coalesce(json_object_agg(counted, total), '{}') FROM usage
                     WHERE usage.user_id = accounts.id) AS used
              FROM signed_in
              JOIN accounts ON id = account_id)
        SELECT session.*, count,
               ceil(extract(epoch FROM until - clock_timestamp()))::integer AS seconds
          FROM session
          LEFT JOIN count_in_window('pages:' || person_id, 1, %(window)s) ON true
        """,
        session=session,
        issuer=settings().oidc_issuer,
        window=parse(settings().page_rate_limit).get_expiry(),
        has_members=has_feature("members"),
    )


def note_use(session: bytes) -> None:
    run("UPDATE sessions SET used = now() WHERE digest = %(session)s", session=session)


def work_in(session: bytes, account_id: int) -> bool:
    """Let a session work in an account: its own, or one in which the person has a role. Return
    False if the person has none."""
    switched = run(
        """
        UPDATE sessions s
           SET account_id = nullif(%(account_id)s::bigint, user_id)
         WHERE digest = %(session)s AND NOT is_link
           AND (user_id = %(account_id)s
                OR EXISTS (SELECT FROM members m
                             JOIN users a ON a.id = m.user_id AND a.suspended = 'no'
                            WHERE m.user_id = %(account_id)s AND member_id = s.user_id))
        RETURNING user_id
        """,
        session=session,
        account_id=account_id,
    )
    return switched is not None


def delete_session(session: bytes) -> Row | None:
    """Return the `user_id` of the session and its encrypted `id_token`, or None if it is
    unknown."""
    return run("DELETE FROM sessions WHERE digest = %(session)s RETURNING user_id, id_token", session=session)


def sessions(user_id: int, *, session: bytes) -> list[Row]:
    """Return the sessions of a user: first `session`, which is marked as current, then the latest.
    `id` is the digest in hexadecimal digits."""
    return rows(
        """
        SELECT encode(digest, 'hex') AS id, browser, system, place, created, used,
               digest = %(session)s AS current
          FROM sessions
         WHERE user_id = %(user_id)s AND NOT (is_link OR pending)
           AND created > now() - interval '30 days'
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
