"""Bio pages."""

from collections.abc import Sequence
from typing import Any, Unpack

import orjson

from linkmgr.db.statements import Page, Paging, Row, page, row, run
from linkmgr.repository.names import run_with_name
from linkmgr.repository.urls import with_random_alias
from linkmgr.settings import settings
from linkmgr.web.errors import not_found


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    return page(
        """
        SELECT id, name, alias, %(base)s::text || '/' || alias AS shorturl, created AS date
          FROM bios
         WHERE user_id = %(user_id)s AND id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'bios'",
        user_id=user_id,
        base=settings().base_url,
        **paging,
    )


def read(user_id: int, bio_id: int) -> Row:
    bio_page = row(
        """
        SELECT id, name, alias, %(base)s::text || '/' || alias AS shorturl, bio, theme, links, created AS date,
               xmin::text AS version
          FROM bios
         WHERE user_id = %(user_id)s AND id = %(bio_id)s
        """,
        user_id=user_id,
        bio_id=bio_id,
        base=settings().base_url,
    )
    if bio_page is None:
        raise not_found("bio page")
    return bio_page


def add(
    user_id: int,
    *,
    name: str,
    alias: str | None = None,
    custom: bool = True,
    bio: str = "",
    theme: str = "light",
    links: Sequence[dict[str, Any]] = (),
) -> Row:
    """Store a bio page, under a random alias if `alias` is None. Return its `id`, `alias` and `shorturl`. `custom` is
    False for an alias that was generated earlier."""
    members = {"name": name, "bio": bio, "theme": theme, "links": orjson.dumps(links).decode()}
    if alias is None:
        added = with_random_alias(lambda alias: _add(user_id, alias, custom=False, **members))
    else:
        added = _add(user_id, alias, custom=custom, **members)
    assert added is not None
    return added


def _add(user_id: int, alias: str, *, custom: bool, name: str, bio: str, theme: str, links: str) -> Row | None:
    return run_with_name(
        """
        INSERT INTO bios (user_id, name, alias, custom, bio, theme, links)
        VALUES (%(user_id)s, %(name)s, %(alias)s, %(custom)s, %(bio)s, %(theme)s, %(links)s)
        RETURNING id, alias, %(base)s::text || '/' || alias AS shorturl
        """,
        user_id=user_id,
        name=name,
        alias=alias,
        custom=custom,
        bio=bio,
        theme=theme,
        links=links,
        base=settings().base_url,
    )


def update(
    user_id: int,
    bio_id: int,
    *,
    name: str | None = None,
    alias: str | None = None,
    bio: str | None = None,
    theme: str | None = None,
    links: Sequence[dict[str, Any]] | None = None,
) -> Row:
    updated = run_with_name(
        """
        UPDATE bios
           SET name = coalesce(%(name)s, name),
               alias = coalesce(%(alias)s, alias),
               bio = coalesce(%(bio)s, bio),
               theme = coalesce(%(theme)s, theme),
               links = coalesce(%(links)s, links)
         WHERE user_id = %(user_id)s AND id = %(bio_id)s
        RETURNING id, name, alias, %(base)s::text || '/' || alias AS shorturl, bio, theme, links, created AS date,
                  xmin::text AS version
        """,
        user_id=user_id,
        bio_id=bio_id,
        name=name,
        alias=alias,
        bio=bio,
        theme=theme,
        links=None if links is None else orjson.dumps(links).decode(),
        base=settings().base_url,
    )
    if updated is None:
        raise not_found("bio page")
    return updated


def delete(user_id: int, bio_id: int) -> None:
    deleted = run(
        "DELETE FROM bios WHERE user_id = %(user_id)s AND id = %(bio_id)s RETURNING id",
        user_id=user_id,
        bio_id=bio_id,
    )
    if deleted is None:
        raise not_found("bio page")
