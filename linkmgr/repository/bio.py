"""Bio pages."""

import orjson

from linkmgr.db.statements import Row
from linkmgr.repository.tables import Table, run_with_name
from linkmgr.repository.urls import with_random_alias

BIOS = Table(
    "bios",
    "bio page",
    "name alias bio theme links",
    added={
        "custom": "%(custom)s OR %(named)s AND 'custom aliases' = ANY (lacking_features(%(user_id)s))",
    },
    changed={"custom": "custom OR coalesce(%(alias)s <> alias, false)"},
    columns="""
    *, CASE WHEN custom THEN alias ELSE '' END AS custom, %(base)s::text || '/' || alias AS shorturl,
    ARRAY(SELECT channel_id FROM channel_items i
            JOIN channels c ON c.user_id = i.user_id AND c.id = channel_id
           WHERE i.user_id = bios.user_id AND i.bio_id = bios.id
           ORDER BY channel_id) AS channel,
    created AS date, version::text
    """,
    write=run_with_name,
)
index, batch, read, delete = BIOS.index, BIOS.batch, BIOS.read, BIOS.delete


def add(user_id: int, members: Row) -> Row:
    """Store a bio page, under a random alias if `alias` is None. `custom` is False for an alias that was generated
    earlier. It needs the plan's feature too, since it may be any."""
    if members["alias"] is None:
        return with_random_alias(
            lambda alias: _add(user_id, members | {"alias": alias, "custom": False, "named": False})
        )
    return _add(user_id, {"custom": True, "named": True} | members)


def _add(user_id: int, members: Row) -> Row:
    return BIOS.add(user_id, _encoded(members))


def _encoded(members: Row) -> Row:
    links = members["links"]
    return members | {"links": None if links is None else orjson.dumps(links).decode()}


def update(user_id: int, bio_id: int, members: Row) -> Row:
    return BIOS.update(user_id, bio_id, _encoded(members))
