import json
from typing import Any

from linkmgr.core.database.statements import NO_TIMEOUT, UNSYNCED, Row, database, row, rows, run, run_one
from linkmgr.core.errors import AppError, existing, not_found
from linkmgr.core.fields.problems import invalid


def all_plans(plan_id: int | None = None) -> list[Row]:
    return rows(
        """
        SELECT id, name, free, coalesce(rate, 0) AS rate,
               CASE WHEN free THEN NULL
                    ELSE json_build_object('monthly', trim_scale(monthly), 'yearly',
                                           trim_scale(yearly),
                                           'lifetime', trim_scale(lifetime)) END AS prices,
               limits, version::text
          FROM plans
         WHERE %(plan_id)s::bigint IS NULL OR id = %(plan_id)s
         ORDER BY id
        """,
        plan_id=plan_id,
    )


def record(plan_id: int) -> Row:
    return existing(next(iter(all_plans(plan_id)), None), "plan")


def with_users() -> list[Row]:
    return rows(
        """
        SELECT id, name, free, monthly::text, yearly::text, lifetime::text, rate, limits,
               (SELECT count(*) FROM users
                 WHERE CASE WHEN plan_id IS NOT NULL AND (expires IS NULL OR expires > now())
                              THEN plan_id
                            ELSE (SELECT min(id) FROM plans WHERE free) END = plans.id) AS users
          FROM plans
         ORDER BY id
        """
    )


def read(plan_id: int) -> Row:
    stored = row(
        """
        SELECT id, name, free, monthly::text, yearly::text, lifetime::text, rate, limits
          FROM plans
         WHERE id = %(plan_id)s
        """,
        plan_id=plan_id,
    )
    return existing(stored, "plan")


def subscribe(plan_id: int, user_id: int, *, type: str, expiration: str | None = None) -> None:  # noqa: A002 - the API's name
    """Subscribe a user to a plan: until `expiration`, or for a calendar month or year, or for life.
    Free plans do not expire."""
    subscribed = run(
        """
        UPDATE users
           SET plan_id = plans.id,
               expires = CASE WHEN plans.free THEN NULL
                              WHEN %(expiration)s::timestamptz IS NOT NULL
                                THEN %(expiration)s::timestamptz
                              WHEN %(type)s = 'monthly' THEN now() + interval '1 month'
                              WHEN %(type)s = 'yearly' THEN now() + interval '1 year' END
          FROM plans
         WHERE users.id = %(user_id)s AND plans.id = %(plan_id)s
        RETURNING users.id
        """,
        user_id=user_id,
        plan_id=plan_id,
        type=type,
        expiration=expiration,
    )
    if subscribed is None:
        plan = row("SELECT id FROM plans WHERE id = %(plan_id)s", plan_id=plan_id)
        raise not_found("user" if plan else "plan")


def add(name: str, *, free: bool, limits: Row, **prices: Any) -> int:
    added = run_one(
        """
        INSERT INTO plans (name, free, monthly, yearly, lifetime, rate, limits)
        VALUES (%(name)s, %(free)s, %(monthly)s, %(yearly)s, %(lifetime)s, nullif(%(rate)s, 0),
                %(limits)s)
        RETURNING id
        """,
        **{"monthly": 0, "yearly": 0, "lifetime": 0, "rate": 0} | prices,
        name=name,
        free=free,
        limits=json.dumps(limits),
    )
    return int(added["id"])


def edit(plan_id: int, *, limits: Row | None = None, **changes: Any) -> None:
    """Change the members that were sent, which are those of `add` but `free`. A rate of 0 removes
    the plan's rate. Missing limits keep their values."""
    edited = run(
        """
        UPDATE plans
           SET name = coalesce(%(name)s, name),
               monthly = coalesce(%(monthly)s, monthly),
               yearly = coalesce(%(yearly)s, yearly),
               lifetime = coalesce(%(lifetime)s, lifetime),
               rate = nullif(coalesce(%(rate)s, rate), 0),
               limits = CASE WHEN limits::jsonb @> %(limits)s::jsonb THEN limits
                             ELSE (limits::jsonb || coalesce(%(limits)s, '{}'))::json END
         WHERE id = %(plan_id)s
           AND NOT (free AND greatest(%(monthly)s, %(yearly)s, %(lifetime)s, 0.0) > 0)
        RETURNING id
        """,
        **dict.fromkeys(("name", "monthly", "yearly", "lifetime", "rate")) | changes,
        plan_id=plan_id,
        limits=None if limits is None else json.dumps(limits),
    )
    if edited is None:
        record(plan_id)
        raise free_plan_with_prices()


def free_plan_with_prices() -> AppError:
    return invalid("prices must be 0 for a free plan")


def note_retention(after: int, limit: int) -> Row:
    """Store the start of the retention period of the next users with older visits, which the purge
    deletes: they do not come back with a longer one. The rollups by day know the days that have
    visits. Return the id of the `last` user, or None if there are no more, and of the users with
    expired visits the `ids`, the starts of their retention periods as `since`, and times before
    which all visits are deleted as `purge_from`."""
    [noted] = database().execute(
        """
        WITH batch AS MATERIALIZED (
            SELECT id FROM users WHERE id > %(after)s ORDER BY id LIMIT %(limit)s),
        retained AS (
            SELECT id, now() - make_interval(days => (limits ->> 'retention')::int) AS since
              FROM accounts
             WHERE id = ANY (ARRAY(SELECT id FROM batch)) AND (limits ->> 'retention')::int > 0),
        noted AS (
            UPDATE users
               SET detailed_since = greatest(detailed_since, since),
                   purge_from = coalesce(purge_from,
                                         (SELECT min(at) FROM account_totals WHERE user_id = users.id))
              FROM retained
             WHERE users.id = retained.id
               AND (SELECT true FROM account_totals
                     WHERE user_id = retained.id AND at < since
                       AND at >= coalesce(date_trunc('day', least(detailed_since, purge_from), 'UTC'),
                                          '-infinity')
                     LIMIT 1)
            RETURNING users.id, since, purge_from)
        SELECT (SELECT max(id) FROM batch) AS last, array_agg(id) AS ids,
               array_agg(since) AS since, array_agg(purge_from) AS purge_from
          FROM noted
        """,
        {"after": after, "limit": limit},
        idempotent=True,
        prelude=UNSYNCED + NO_TIMEOUT,
    )
    return noted


def require_exports(user_id: int) -> None:
    row(
        "SELECT require_feature(%(user_id)s, 'exports')",
        user_id=user_id,
    )
