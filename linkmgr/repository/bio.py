from typing import Unpack

import orjson
from psycopg2 import IntegrityError

from linkmgr.core.database.paging import NamedPaging, Page, named_page
from linkmgr.core.database.statements import Row, row, rows, run, run_repaired
from linkmgr.core.database.tables import BATCH
from linkmgr.core.errors import existing
from linkmgr.core.fields.short_urls import short_url
from linkmgr.repository.links import with_random_alias
from linkmgr.repository.taken_names import release_name


def _to_record(bio: Row) -> Row:
    return bio | {
        "custom": bio["alias"] if bio["custom"] else "",
        "shorturl": short_url(None, bio["alias"]),
    }


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    bios = named_page(
        """
        SELECT id, name, alias, custom, created AS date, updated, version::text
          FROM bios
         WHERE user_id = %(user_id)s AND has_text(name, %(q)s)
        """,
        counted="bios",
        user_id=user_id,
        **paging,
    )
    bios.rows[:] = map(_to_record, bios.rows)
    return bios


def batch(user_id: int, after: int) -> list[Row]:
    bios = rows(
        """
        SELECT *, created AS date,
               ARRAY(SELECT channel_id FROM channel_items i
                       JOIN channels c ON c.user_id = i.user_id AND c.id = channel_id
                      WHERE i.user_id = bios.user_id AND i.bio_id = bios.id
                      ORDER BY channel_id) AS channel
          FROM bios
         WHERE user_id = %(user_id)s AND id > %(after)s
         ORDER BY id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=BATCH,
    )
    return [_to_record(bio) for bio in bios]


def read(user_id: int, bio_id: int) -> Row:
    stored = row(
        "SELECT *, created AS date, version::text FROM bios WHERE user_id = %(user_id)s AND id = %(bio_id)s",
        user_id=user_id,
        bio_id=bio_id,
    )
    return _to_record(existing(stored, "bio page"))


def add(user_id: int, members: Row) -> Row:
    """Store a bio page, under a random alias if `alias` is None. `custom` is False for an alias
    that was generated earlier. It needs the plan's feature too, since it may be any."""
    if members["alias"] is None:
        return with_random_alias(
            lambda alias: _add(user_id, members | {"alias": alias, "custom": False, "named": False})
        )
    return _add(user_id, {"custom": True, "named": True} | members)


def _add(user_id: int, members: Row) -> Row:
    added = run_repaired(
        """
        WITH added AS (
            INSERT INTO bios (user_id, name, alias, custom, bio, theme, links)
            VALUES (%(user_id)s, %(name)s, %(alias)s, %(custom)s, %(bio)s, %(theme)s, %(links)s)
            RETURNING *)
        SELECT *, created AS date, version::text
          FROM added
         WHERE (NOT %(named)s OR require_feature(user_id, 'custom aliases'))
           AND require_unblocked(user_id, to_jsonb(added))
        """,
        _release,
        **_encoded(members),
        user_id=user_id,
    )
    assert added
    return _to_record(added)


def _release(violation: IntegrityError, params: Row) -> bool:
    """Release the alias of a deleted user, or refuse one that a link in the user's own bin has."""
    if release_name(violation, params):
        return True
    if violation.diag.constraint_name == "alias_taken":
        run(
            """
            SELECT refuse('alias_taken', 'binned')
              FROM alias_at(NULL, %(alias)s) a
              JOIN binned_links b ON b.id = a.link_id
             WHERE b.user_id = %(user_id)s
            """,
            alias=params["alias"],
            user_id=params["user_id"],
        )
    return False


def _encoded(members: Row) -> Row:
    links = members["links"]
    return members | {"links": None if links is None else orjson.dumps(links).decode()}


def update(user_id: int, bio_id: int, members: Row) -> Row:
    updated = run_repaired(
        """
        WITH updated AS (
            UPDATE bios
               SET name = coalesce(%(name)s, name),
                   alias = coalesce(%(alias)s, alias),
                   custom = custom OR coalesce(%(alias)s <> alias, false),
                   bio = coalesce(%(bio)s, bio),
                   theme = coalesce(%(theme)s, theme),
                   links = coalesce(%(links)s, links)
             WHERE user_id = %(user_id)s AND id = %(bio_id)s
            RETURNING *)
        SELECT u.*, u.created AS date, u.version::text
          FROM updated u
          JOIN bios before USING (id)
         WHERE (u.alias = before.alias OR require_feature(u.user_id, 'custom aliases'))
           AND require_unblocked(u.user_id, to_jsonb(u), to_jsonb(before))
        """,
        _release,
        **_encoded(members),
        user_id=user_id,
        bio_id=bio_id,
    )
    return _to_record(existing(updated, "bio page"))


def delete(user_id: int, bio_id: int) -> None:
    deleted = run(
        "DELETE FROM bios WHERE user_id = %(user_id)s AND id = %(bio_id)s RETURNING id",
        user_id=user_id,
        bio_id=bio_id,
    )
    existing(deleted, "bio page")
