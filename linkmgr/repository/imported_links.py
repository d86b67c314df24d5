"""Rows that imported links refer to, and links that already exist."""

import orjson

from linkmgr.db.statements import Row, rows, run

DEFAULT_COLOR = "#64748b"  # of channels that an import makes
MAX_SUFFIX = 999


def last_id() -> int:
    """Return an id above those of all links that exist, and below those that are made from now on."""
    record = run("SELECT nextval('tracked_ids') AS id")
    assert record
    return int(record["id"])


def own_hosts(user_id: int, hosts: list[str]) -> set[str]:
    """Return those of the hosts that are branded domains of the user."""
    records = rows(
        "SELECT host FROM domains WHERE user_id = %(user_id)s AND host = ANY (%(hosts)s::text[])",
        user_id=user_id,
        hosts=hosts,
    )
    return {record["host"] for record in records}


def channel_ids(user_id: int, names: list[str]) -> dict[str, int]:
    """Return the ids of the user's channels with these names, which are made if they are missing."""
    records = rows(
        """
        WITH added AS (
            INSERT INTO channels (user_id, name, color)
            SELECT %(user_id)s, name, %(color)s
              FROM unnest(%(names)s::text[]) AS sent (name)
             WHERE NOT EXISTS (SELECT FROM channels c WHERE c.user_id = %(user_id)s AND c.name = sent.name)
             ORDER BY name
            ON CONFLICT (user_id, name) DO UPDATE SET name = excluded.name
            RETURNING name, id)
        SELECT name, id FROM added
         UNION ALL
        SELECT name, id FROM channels WHERE user_id = %(user_id)s AND name = ANY (%(names)s::text[])
        """,
        user_id=user_id,
        names=names,
        color=DEFAULT_COLOR,
    )
    return {record["name"]: record["id"] for record in records}


def find_own(user_id: int, names: list[Row]) -> list[int | None]:
    """Return the ids of the user's links with each `alias` on each `host` ("" is our own), or None where there is none
    or another user's."""
    records = rows(
        """
        SELECT (SELECT l.id
                  FROM aliases a
                  JOIN links l ON l.id = a.link_id AND l.user_id = %(user_id)s
                 WHERE a.alias = sent.alias
                   AND a.domain_id = CASE sent.host WHEN '' THEN 0
                                     ELSE (SELECT id FROM domains d
                                            WHERE d.user_id = %(user_id)s AND d.host = sent.host) END) AS id
          FROM ROWS FROM (json_to_recordset(%(names)s) AS (alias text, host text)) WITH ORDINALITY
               AS sent (alias, host, n)
         ORDER BY n
        """,
        user_id=user_id,
        names=orjson.dumps(names).decode(),
    )
    return [record["id"] for record in records]


def targets(user_id: int, ids: list[int]) -> dict[int, str]:
    """Return the URLs of links by their ids."""
    records = rows(
        "SELECT id, url FROM links WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])",
        user_id=user_id,
        ids=ids,
    )
    return {record["id"]: record["url"] for record in records}


def free_suffixes(user_id: int, names: list[Row]) -> list[int | None]:
    """Return the smallest number from 2, after `number` others, that makes each `alias` free on its `host`.

    The LIMIT inside makes PostgreSQL look up single aliases instead of reading the whole table for each row. An ORDER
    BY would look up all numbers; a series is in order.
    """
    records = rows(
        """
        SELECT (SELECT suffix
                  FROM generate_series(2, %(max_suffix)s) AS suffix
                 WHERE (SELECT true FROM aliases a
                         WHERE a.alias = sent.alias || '-' || suffix
                           AND a.domain_id = CASE sent.host WHEN '' THEN 0
                                             ELSE (SELECT id FROM domains d
                                                    WHERE d.user_id = %(user_id)s AND d.host = sent.host) END
                         LIMIT 1) IS NULL
                OFFSET sent.number LIMIT 1) AS suffix
          FROM ROWS FROM (json_to_recordset(%(names)s) AS (alias text, host text, number integer)) WITH ORDINALITY
               AS sent (alias, host, number, n)
         ORDER BY n
        """,
        user_id=user_id,
        names=orjson.dumps(names).decode(),
        max_suffix=MAX_SUFFIX,
    )
    return [record["suffix"] for record in records]


def set_clicks(user_id: int, clicks: dict[int, int]) -> None:
    """Store the number of clicks that another service counted, by id of the link."""
    run(
        """
        UPDATE links SET imported_clicks = nullif(counted.clicks, 0)
          FROM unnest(%(ids)s::bigint[], %(clicks)s::bigint[]) AS counted (id, clicks)
         WHERE links.user_id = %(user_id)s AND links.id = counted.id
        """,
        user_id=user_id,
        ids=[*clicks],
        clicks=[*clicks.values()],
    )


def set_password_hash(user_id: int, link_id: int, password_hash: str) -> None:
    run(
        """
        UPDATE links SET password_hash = %(password_hash)s, plain = false
         WHERE user_id = %(user_id)s AND id = %(link_id)s
        """,
        user_id=user_id,
        link_id=link_id,
        password_hash=password_hash,
    )


def subtract_visits(user_id: int, visits: dict[int, int]) -> None:
    """Subtract the visits that an import stores from the clicks that the source counted, by id of the link."""
    run(
        """
        UPDATE links SET imported_clicks = nullif(greatest(imported_clicks - counted.visits, 0), 0)
          FROM unnest(%(ids)s::bigint[], %(visits)s::bigint[]) AS counted (id, visits)
         WHERE links.user_id = %(user_id)s AND links.id = counted.id AND imported_clicks IS NOT NULL
        """,
        user_id=user_id,
        ids=[*visits],
        visits=[*visits.values()],
    )
