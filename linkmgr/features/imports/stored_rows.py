"""Rows that imports make, refer to, or find in use."""

from typing import Any

import orjson
import psycopg2

from linkmgr.core.database.statements import Row, rows, run, run_repeatable
from linkmgr.core.database.tables import TABLES
from linkmgr.qr import logos
from linkmgr.repository.overlay import MAX_ANSWERS

DEFAULT_COLOR = "#64748b"  # of channels that an import makes


def channel_ids(user_id: int, names: list[str]) -> dict[str, int]:
    """Return the ids of the user's channels with these names, which are made if they are missing.
    Letter case matters only between existing channels."""
    named = run_repeatable(
        """
        WITH missing AS (
            SELECT DISTINCT ON (lower(name)) name
              FROM unnest(%(names)s::text[]) AS sent (name)
             WHERE NOT EXISTS (SELECT FROM channels c
                                WHERE c.user_id = %(user_id)s AND lower(c.name) = lower(sent.name))
             ORDER BY lower(name), name),
        added AS (
            INSERT INTO channels (user_id, name, color)
            SELECT %(user_id)s, name, %(color)s FROM missing ORDER BY name
            ON CONFLICT (user_id, name) DO UPDATE SET name = excluded.name
            RETURNING name, id)
        SELECT coalesce(json_object_agg(sent.name, id), '{}') AS ids
          FROM unnest(%(names)s::text[]) AS sent (name),
               LATERAL (SELECT id
                          FROM (SELECT name, id FROM added
                                 UNION ALL
                                SELECT name, id FROM channels c
                                 WHERE user_id = %(user_id)s
                                   AND lower(c.name) = lower(sent.name)) own
                         WHERE lower(own.name) = lower(sent.name)
                         ORDER BY own.name <> sent.name, id
                         LIMIT 1) chosen
        """,
        user_id=user_id,
        names=names,
        color=DEFAULT_COLOR,
    )
    return named["ids"] if named else {}


def find_own(user_id: int, names: list[Row]) -> list[Row]:
    """Return `id`, `url` and `source_host` of the user's links with each `alias` on each `host` (""
    is our own). They are None where there is none or another user's."""
    return rows(
        """
        SELECT l.id, l.url, l.source_host
          FROM ROWS FROM (json_to_recordset(%(names)s) AS (alias text, host text)) WITH ORDINALITY
               AS sent (alias, host, n)
          LEFT JOIN LATERAL (
               SELECT l.id, l.url, l.source_host
                 FROM alias_at(nullif(sent.host, ''), sent.alias) a
                 JOIN links l ON l.id = a.link_id AND l.user_id = %(user_id)s) l ON true
         ORDER BY n
        """,
        user_id=user_id,
        names=orjson.dumps(names).decode(),
    )


def subtract_clicks(user_id: int, clicks: dict[int, int]) -> None:
    run(
        """
        UPDATE links
           SET imported_clicks = nullif(greatest(imported_clicks - counted.clicks, 0), 0)
          FROM unnest(%(ids)s::bigint[], %(clicks)s::bigint[]) AS counted (id, clicks)
         WHERE links.user_id = %(user_id)s AND links.id = counted.id AND imported_clicks IS NOT NULL
        """,
        user_id=user_id,
        ids=[*clicks],
        clicks=[*clicks.values()],
    )


def count_clicks(user_id: int, link_id: int, clicks: int) -> None:
    run(
        """
        UPDATE links
           SET imported_clicks = nullif(greatest(coalesce(imported_clicks, 0) + %(clicks)s
                                                 - coalesce(source_clicks, imported_clicks, 0), 0),
                                                 0),
               source_clicks = %(clicks)s
         WHERE user_id = %(user_id)s AND id = %(link_id)s
        """,
        user_id=user_id,
        link_id=link_id,
        clicks=clicks,
    )


# --- rows of an exported account

_SET_CREATED = {
    table: f"""
        UPDATE {table} SET created = least(%(created)s::timestamptz, now())
         WHERE user_id = %(user_id)s AND id = %(row_id)s
    """  # noqa: S608 - the same for several tables
    for table in (*TABLES, "qrs")
}
# By table and member
_OWN_IDS = {
    (table, member): f"""
        SELECT id, ({column})::text AS key FROM {table}
         WHERE user_id = %(user_id)s AND {column} = ANY (%(keys)s::{column_type}[])
    """  # noqa: S608 - the same for several tables
    for table, member, column, column_type in (
        ("domains", "domain", "domain", "text"),
        ("domains", "host", "host", "text"),
        ("campaigns", "name", "name", "text"),
        ("channels", "name", "name", "text"),
        ("qrs", "code", "code", "text"),
        ("kept_qrs", "code", "code", "text"),
        ("bios", "alias", "alias", "text"),
        *((table, "id", "id", "bigint") for table in (*TABLES, "qrs")),
    )
}


def set_created(user_id: int, table: str, row_id: int, created: str) -> None:
    run(_SET_CREATED[table], user_id=user_id, row_id=row_id, created=created)


def own_ids(user_id: int, table: str, member: str, values: list[Any]) -> dict[str, int]:
    stored = rows(_OWN_IDS[table, member], user_id=user_id, keys=values)
    return {row["key"]: row["id"] for row in stored}


def set_logo(user_id: int, record: Row) -> None:
    """Set the logo of the QR code `id` to the `image`, if an import has made that one."""
    if not record.get("id"):
        return
    run(
        """
        UPDATE qrs SET logo_hash = store_logo(%(user_id)s, %(logo)s)
         WHERE user_id = %(user_id)s AND id = %(qr_id)s
        """,
        user_id=user_id,
        qr_id=record["id"],
        logo=psycopg2.Binary(logos.decode(record.get("image"))),
    )


def add_answers(user_id: int, answers: list[Row]) -> None:
    """Store answers with `overlay`, `answer` and `date`, at most MAX_ANSWERS of an overlay. Those
    of overlays that have been deleted meanwhile are left out."""
    run(
        """
        WITH sent AS MATERIALIZED (
            SELECT sent.*, row_number() OVER (PARTITION BY overlay ORDER BY n) AS place
              FROM ROWS FROM (json_to_recordset(%(answers)s) AS (
                   overlay bigint, answer json, date timestamptz)) WITH ORDINALITY
                   AS sent (overlay, answer, date, n)),
        own AS MATERIALIZED (
            SELECT id FROM overlays
             WHERE user_id = %(user_id)s AND id IN (SELECT overlay FROM sent)
               FOR KEY SHARE),
        added AS (
            INSERT INTO overlay_answers (user_id, overlay_id, answer, created)
            SELECT %(user_id)s, overlay, answer, least(date, now())
              FROM sent
             WHERE overlay IN (SELECT id FROM own)
               AND place + (SELECT count(*) FROM overlay_answers WHERE overlay_id = overlay)
                   <= %(max_answers)s
             ORDER BY n
            RETURNING *)
        INSERT INTO outbox (user_id, type, object_id, data)
        SELECT user_id, 'answer.received', id, to_jsonb(added)
          FROM added
         WHERE has_webhooks(user_id)
         ORDER BY id
        """,
        user_id=user_id,
        answers=orjson.dumps(answers).decode(),
        max_answers=MAX_ANSWERS,
    )
