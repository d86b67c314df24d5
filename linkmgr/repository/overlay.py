"""CTA overlays, and the answers that visitors sent."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, row, rows, run
from linkmgr.errors import not_found
from linkmgr.repository.colors import run_with_colors


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    return page(
        """
        SELECT id, type, name, created AS date
          FROM overlays
         WHERE user_id = %(user_id)s AND id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'overlays'",
        user_id=user_id,
        **paging,
    )


def batch(user_id: int, after: int, limit: int) -> list[Row]:
    return rows(
        """
        SELECT *, created AS date
          FROM overlays
         WHERE user_id = %(user_id)s AND id > %(after)s
         ORDER BY id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=limit,
    )


def read(user_id: int, overlay_id: int) -> Row:
    overlay = row(
        """
        SELECT *, created AS date, version::text
          FROM overlays
         WHERE user_id = %(user_id)s AND id = %(overlay_id)s
        """,
        user_id=user_id,
        overlay_id=overlay_id,
    )
    if overlay is None:
        raise not_found("overlay")
    return overlay


def answers(user_id: int, overlay_id: int, **paging: Unpack[Paging]) -> Page:
    sent = page(
        """
        SELECT id, answer, created AS date
          FROM overlay_answers
         WHERE overlay_id = (SELECT id FROM overlays WHERE user_id = %(user_id)s AND id = %(overlay_id)s)
           AND id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        """
        SELECT count(*) FROM overlay_answers
         WHERE overlay_id = (SELECT id FROM overlays WHERE user_id = %(user_id)s AND id = %(overlay_id)s)
        """,
        user_id=user_id,
        overlay_id=overlay_id,
        **paging,
    )
    if not sent.total:
        read(user_id, overlay_id)  # raises not_found
    return sent


def add(user_id: int, members: Row) -> Row:
    added = run_with_colors(
        """
        INSERT INTO overlays (user_id, type, name, message, link, label, position, color, background)
        VALUES (%(user_id)s, %(type)s, %(name)s, %(message)s, %(link)s, %(label)s, %(position)s, %(color)s,
                %(background)s)
        RETURNING *, created AS date, version::text
        """,
        user_id=user_id,
        **members,
    )
    assert added is not None
    return added


def update(user_id: int, overlay_id: int, members: Row, *, checked: Row | None = None) -> Row:
    """Write the members that were sent. With `checked`, return nothing unless type and message are still its own."""
    updated = run_with_colors(
        """
        UPDATE overlays
           SET type = coalesce(%(type)s, type),
               name = coalesce(%(name)s, name),
               message = coalesce(%(message)s, message),
               link = coalesce(%(link)s, link),
               label = coalesce(%(label)s, label),
               position = coalesce(%(position)s, position),
               color = coalesce(%(color)s, color),
               background = coalesce(%(background)s, background)
         WHERE user_id = %(user_id)s AND id = %(overlay_id)s
           AND (type, message) = (coalesce(%(checked_type)s, type), coalesce(%(checked_message)s, message))
        RETURNING *, created AS date, version::text
        """,
        user_id=user_id,
        overlay_id=overlay_id,
        **members,
        checked_type=checked and checked["type"],
        checked_message=checked and checked["message"],
    )
    if updated is None and checked is None:
        raise not_found("overlay")
    return updated or {}


def delete(user_id: int, overlay_id: int) -> None:
    """Delete an overlay and its answers. Its links remain and redirect directly."""
    deleted = run(
        "DELETE FROM overlays WHERE user_id = %(user_id)s AND id = %(overlay_id)s RETURNING id",
        user_id=user_id,
        overlay_id=overlay_id,
    )
    if deleted is None:
        raise not_found("overlay")
