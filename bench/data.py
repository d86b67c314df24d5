"""The measured data: a user with many links and QR codes. One link and one QR code have many
visits."""

from contextlib import closing
from typing import NamedTuple

from psycopg2.extras import execute_values

from linkmgr import create_app
from linkmgr.core import keys
from linkmgr.core.database import migrations
from linkmgr.core.database.statements import database, row
from linkmgr.repository import users
from linkmgr.visits import store as stored

BUSY = "busy"  # alias of the link and code of the QR code that have the visits
QRS = 2000
_UNLIMITED = "1000000000 per minute"

# A rate and a limit that are never reached: the service counts each request and each create, as
# with those of any plan.
_PLAN = """
    INSERT INTO plans (name, free, rate, limits)
    SELECT 'Bench', false, 1000000000, (limits::jsonb || '{"links": 1000000000}')::json
      FROM plans WHERE name = 'Business'
    RETURNING id
"""
_LINKS = """
    INSERT INTO links (user_id, alias, url, title, created)
    SELECT %(user_id)s, CASE n WHEN %(links)s / 2 THEN %(busy)s ELSE 'link-' || n END,
           'https://example.com/page/' || n, 'Page ' || n,
           now() - (%(links)s - n) * interval '1 second'
      FROM generate_series(1, %(links)s) n
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


class Data(NamedTuple):
    dsn: str
    key: str
    link: int  # id of the link with the visits
    keys: list[str] = []  # of eight users, the one with the links among them


def settings(dsn: str) -> dict[str, str]:
    limits = {"rate_limit": _UNLIMITED, "bulk_rows": _UNLIMITED}
    return {"database_url": dsn, "secret_key": "bench" * 8, "link_check": "0"} | limits


def make(dsn: str, *, links: int, visits: int) -> Data:
    """Fill an empty database."""
    app = create_app(**settings(dsn))
    with app.app_context():
        migrations.upgrade(create=True)
        user_id = users.next_id()
        with closing(database().connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0; SET synchronous_commit = off")
            cursor.execute(_PLAN)
            [(plan,)] = cursor.fetchall()
            members = [user_id, *(users.next_id() for _ in range(7))]
            for member in members:
                name, key = f"bench{member}", keys.new_key(member)
                users.add(
                    member, username=name, email=f"{name}@example.com", password_hash="", planid=plan, **key
                )
            values = {"user_id": user_id, "links": links, "visits": visits, "qrs": QRS, "busy": BUSY}
            for statement in (_LINKS, _CHECKS, _QRS):
                cursor.execute(statement, values)
            for start in range(0, visits, BATCH):
                cursor.execute(_VISITS, values | {"start": start, "batch": min(BATCH, visits - start)})
                [(batch,)] = cursor.fetchall()
                stored.create_partitions_for(batch)
                stored.add("bench", start, start + BATCH, batch)
            cursor.execute("VACUUM ANALYZE")
        link = row("SELECT id FROM links WHERE alias = %(busy)s", busy=BUSY)
        assert link
        secrets = [users.read(member)["apikey"] for member in members]
        return Data(dsn, secrets[0], link["id"], secrets)


def add_users(data: Data, number: int) -> None:
    """Add users with valid keys, and make the first user an administrator."""
    app = create_app(**settings(data.dsn))
    with app.app_context(), closing(database().connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0; UPDATE users SET admin = true; SELECT max(id) FROM users")
        [(last,)] = cursor.fetchall()
        values = [
            {"id": user_id, "name": f"user-{user_id}", **keys.new_key(user_id)}
            for user_id in range(last + 1, last + 1 + number)
        ]
        execute_values(
            cursor,
            "INSERT INTO users (id, username, email, password_hash, key_digest, key_ciphertext) VALUES %s",
            values,
            "(%(id)s, %(name)s, %(name)s || '@example.com', '', %(key_digest)s, %(key_ciphertext)s)",
            page_size=1000,
        )
