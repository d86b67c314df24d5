"""CTA overlays, and the answers that visitors sent."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, row, run
from linkmgr.errors import AppError
from linkmgr.repository.tables import Table, run_with_colors

OVERLAYS = Table("overlays", "overlay", write=run_with_colors)
MAX_ANSWERS = 100_000  # per overlay
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


def form(user_id: int, overlay_id: int) -> Row | None:
    """Return the members of the overlay that its form depends on, or None."""
    return row(
        """
        SELECT type, message
          FROM overlays
         WHERE user_id = %(user_id)s AND id = %(overlay_id)s
           AND EXISTS (SELECT FROM users WHERE users.id = user_id)
        """,
        user_id=user_id,
        overlay_id=overlay_id,
    )


def add_answer(user_id: int, overlay_id: int, *, answer: str) -> None:
    """Store an answer, which is JSON text. Raise an error if the overlay was deleted or has MAX_ANSWERS answers.

    FOR KEY SHARE waits for a concurrent delete of the overlay, so that no answer to a deleted overlay is stored.
    """
    overlay = run(
        """
        WITH overlay AS (
            SELECT user_id, id,
                   NOT EXISTS (SELECT FROM overlay_answers WHERE overlay_id = %(overlay_id)s
                               OFFSET %(max_answers)s - 1 LIMIT 1) AS accepts_answers
              FROM overlays
             WHERE user_id = %(user_id)s AND id = %(overlay_id)s
               AND EXISTS (SELECT FROM users WHERE users.id = user_id)
               FOR KEY SHARE),
        added AS (
            INSERT INTO overlay_answers (user_id, overlay_id, answer)
            SELECT user_id, id, %(answer)s::json FROM overlay WHERE accepts_answers)
        SELECT accepts_answers FROM overlay
        """,
        user_id=user_id,
        overlay_id=overlay_id,
        answer=answer,
        max_answers=MAX_ANSWERS,
    )
    if overlay is None:
        raise AppError("no_such_page")
    if not overlay["accepts_answers"]:
        raise AppError("answers_full")
