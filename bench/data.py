"""The measured data: a user without limits who has many links and QR codes, and 400 users with the
limits of their plan. One link and one QR code have many visits."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any, NamedTuple

from psycopg2.extras import execute_values

from linkmgr import create_app
from linkmgr.core import keys
from linkmgr.core.database import migrations
from linkmgr.core.database.statements import database, row
from linkmgr.repository import users
from linkmgr.visits import store as stored

BUSY = "busy"  # alias of the link and code of the QR code that have the visits
QRS = 2000
USERS, LINKS = 400, 25  # users with the plan Business, and the links of each
_UNLIMITED = "1000000000 per minute"

# A rate and a limit that are never reached. Requests and links are counted nevertheless.
_PLAN = """
    INSERT INTO plans (name, free, rate, limits)
    SELECT 'Bench', false, 1000000000, (limits::jsonb || '{"links": 1000000000}')::json
      FROM plans WHERE name = 'Business'
    RETURNING id
"""
_LINKS = """
    INSERT INTO links (user_id, alias, url, title, clickid, created)
    SELECT %(user_id)s, CASE n WHEN %(links)s / 2 THEN %(busy)s ELSE 'link-' || n END,
           'https://example.com/page/' || n, 'Page ' || n, n BETWEEN 101 AND 200,
           now() - (%(links)s - n) * interval '1 second'
      FROM generate_series(1, %(links)s) n
"""
_LINKS_OF_USERS = """
    INSERT INTO links (user_id, alias, url, title)
    SELECT user_id, 'of-' || user_id || '-' || n, 'https://example.com/page/' || n, 'Page ' || n
      FROM unnest(%(users)s::bigint[]) user_id, generate_series(1, %(links)s) n
"""
_CHECKS = """
    INSERT INTO link_checks (link_id, user_id, due, checked, state)
    SELECT id, user_id, now() + random() * interval '7 days', now(), 'ok' FROM links
"""
_QRS = """
    INSERT INTO qrs (user_id, code, type, data, name, background, foreground)
    SELECT %(user_id)s, CASE n WHEN 0 THEN %(busy)s ELSE 'code-' || n END, 'link',
           '"https://example.com/"', 'Code', 'rgb(255,255,255)', 'rgb(0,0,0)'
      FROM generate_series(0, %(qrs)s) n
"""
# As in real traffic, few labels are common and most are rare: the n-th occurs 1/n times as often as
# the first.
_VISITS = """
    SELECT json_agg(visits)::text AS visits
      FROM (SELECT target.id AS tracked_id, %(user_id)s::bigint AS user_id,
                   extract(epoch FROM now() - (1 - (%(start)s + n) / %(visits)s::float8) * interval '20 days') AS at,
                   encode(sha256(int4send((random() * %(visits)s)::int)), 'hex') AS visitor,
                   'Country ' || floor(150 ^ random()) AS country,
                   floor(2000 ^ random()) || '.example' AS referrer,
                   'Browser ' || floor(40 ^ random()) AS browser,
                   'System ' || floor(20 ^ random()) AS os,
                   'Unknown' AS device, 'Unknown' AS city, 'Unknown' AS language, 'click' AS kind,
                   false AS bot
              FROM (SELECT id FROM links WHERE alias = %(busy)s
                     UNION ALL
                    SELECT id FROM qrs WHERE code = %(busy)s) target,
                   generate_series(1, %(batch)s) n) visits
"""
BATCH = 1000  # visits of each of both


class User(NamedTuple):
    key: str
    link: int  # id of one of the user's links
    alias: str  # of the link


class Data(NamedTuple):
    dsn: str
    key: str  # of the user without limits
    link: int  # id of the link with the visits
    users: list[User] = []  # with the limits of their plan


def settings(dsn: str) -> dict[str, str]:
    limits = {"rate_limit": _UNLIMITED, "bulk_rows": _UNLIMITED}
    return {"database_url": dsn, "secret_key": "bench" * 8, "link_check": "0"} | limits


def make(dsn: str, *, links: int, visits: int) -> Data:
    """Fill an empty database."""
    app = create_app(**settings(dsn))
    with app.app_context():
        migrations.upgrade(create=True)
        user_id, *limited = [users.next_id() for _ in range(1 + USERS)]
        with closing(database().connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0; SET synchronous_commit = off")
            insert_unlimited(cursor, user_id)
            cursor.execute("SELECT id FROM plans WHERE name = 'Business'")
            [(plan,)] = cursor.fetchall()
            _insert_users(cursor, limited, plan)
            values = {"user_id": user_id, "visits": visits, "qrs": QRS, "busy": BUSY}
            insert_links(cursor, user_id, links)
            for statement in (_CHECKS, _QRS):
                cursor.execute(statement, values)
            cursor.execute(_LINKS_OF_USERS, {"users": limited, "links": LINKS})
            for start in range(0, visits, BATCH):
                cursor.execute(_VISITS, values | {"start": start, "batch": min(BATCH, visits - start)})
                [(batch,)] = cursor.fetchall()
                stored.create_partitions_for(batch)
                stored.add("bench", start, start + BATCH, batch)
            cursor.execute("VACUUM ANALYZE")
        link = row("SELECT id FROM links WHERE alias = %(busy)s", busy=BUSY)
        assert link
        return Data(dsn, _key(user_id), link["id"], [_user(member) for member in limited])


def insert_unlimited(cursor: Any, user_id: int) -> None:
    """Add a user with a plan without limits."""
    cursor.execute(_PLAN)
    [(plan,)] = cursor.fetchall()
    _insert_users(cursor, [user_id], plan)


def insert_links(cursor: Any, user_id: int, links: int) -> None:
    cursor.execute(_LINKS, {"user_id": user_id, "links": links, "busy": BUSY})


def _key(user_id: int) -> str:
    return str(users.read(user_id)["apikey"])


def _user(user_id: int) -> User:
    link = row("SELECT id, alias FROM links WHERE user_id = %(user_id)s ORDER BY id LIMIT 1", user_id=user_id)
    assert link
    return User(_key(user_id), link["id"], link["alias"])


def _insert_users(cursor: Any, ids: Iterable[int], plan: int | None = None) -> None:
    values = [
        {"id": user_id, "name": f"user-{user_id}", "plan": plan, **keys.new_key(user_id)} for user_id in ids
    ]
    execute_values(
        cursor,
        "INSERT INTO users (id, username, email, password_hash, plan_id, key_digest, key_ciphertext) VALUES %s",
        values,
        "(%(id)s, %(name)s, %(name)s || '@example.com', '', %(plan)s, %(key_digest)s, %(key_ciphertext)s)",
        page_size=1000,
    )


def add_users(data: Data, number: int) -> None:
    """Add users with valid keys, and make the first user an administrator."""
    app = create_app(**settings(data.dsn))
    with app.app_context(), closing(database().connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0; UPDATE users SET admin = true; SELECT max(id) FROM users")
        [(last,)] = cursor.fetchall()
        _insert_users(cursor, range(last + 1, last + 1 + number))
