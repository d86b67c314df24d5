"""CTA overlays, and the answers that visitors sent."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, row, run
from linkmgr.errors import AppError, required
from linkmgr.repository.tables import Table

OVERLAYS = Table("overlays", "overlay", "type name message link label position color background")
MAX_ANSWERS = 100_000  # per overlay
# The events of the answers that a statement has `added`.
ANSWERS_RECORDED = """
        recorded AS (
            INSERT INTO outbox (user_id, type, data)
            SELECT user_id, 'answer.received',
                   jsonb_build_object('id', id, 'overlay', overlay_id, 'answer', answer,
                                      'date', to_char(created AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'))
              FROM added
             WHERE has_webhooks(user_id))
"""


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
        OVERLAYS.read(user_id, overlay_id)  # raises not_found
    return sent


def form(user_id: int, overlay_id: int) -> Row | None:
    """Return the members of the overlay that its form depends on, or None."""
    return row(
        """
        SELECT type, message
          FROM overlays
         WHERE user_id = %(user_id)s AND id = %(overlay_id)s
           AND EXISTS (SELECT FROM users WHERE users.id = user_id AND suspended <> 'all')
        """,
        user_id=user_id,
        overlay_id=overlay_id,
    )


def add_answer(user_id: int, overlay_id: int, *, answer: str) -> None:
    """Store an answer, which is JSON text. Raise an error if the overlay was deleted or has MAX_ANSWERS answers.

    FOR KEY SHARE waits for a concurrent delete of the overlay, so that no answer to a deleted overlay is stored.
    """
    overlay = run(
        f"""
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
            SELECT user_id, id, %(answer)s::json FROM overlay WHERE accepts_answers
            RETURNING *),
        {ANSWERS_RECORDED}
        SELECT accepts_answers FROM overlay
        """,  # noqa: S608 - static SQL
        user_id=user_id,
        overlay_id=overlay_id,
        answer=answer,
        max_answers=MAX_ANSWERS,
    )
    if not required(overlay, "no_such_page")["accepts_answers"]:
        raise AppError("answers_full")
