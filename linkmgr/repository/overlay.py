"""CTA overlays, and the answers that visitors sent."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page
from linkmgr.repository.colors import run_with_colors
from linkmgr.repository.tables import Table

OVERLAYS = Table("overlays", "overlay", write=run_with_colors)
index, batch, read, delete = OVERLAYS.index, OVERLAYS.batch, OVERLAYS.read, OVERLAYS.delete


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
    sql = """
        INSERT INTO overlays (user_id, type, name, message, link, label, position, color, background)
        VALUES (%(user_id)s, %(type)s, %(name)s, %(message)s, %(link)s, %(label)s, %(position)s, %(color)s,
                %(background)s)
    """
    return OVERLAYS.add(sql, user_id, members)


def update(user_id: int, overlay_id: int, members: Row, *, checked: Row | None = None) -> Row:
    """Write the members that were sent. With `checked`, raise not_found unless type and message are still its own."""
    sql = """
        UPDATE overlays
           SET type = coalesce(%(type)s, type),
               name = coalesce(%(name)s, name),
               message = coalesce(%(message)s, message),
               link = coalesce(%(link)s, link),
               label = coalesce(%(label)s, label),
               position = coalesce(%(position)s, position),
               color = coalesce(%(color)s, color),
               background = coalesce(%(background)s, background)
         WHERE user_id = %(user_id)s AND id = %(row_id)s
           AND (type, message) = (coalesce(%(checked_type)s, type), coalesce(%(checked_message)s, message))
    """
    values = {"checked_type": checked and checked["type"], "checked_message": checked and checked["message"]}
    return OVERLAYS.change(sql, user_id, overlay_id, members | values)
