"""What is shown before a visitor goes on, and what visitors answer to it."""

from linkmgr.db.statements import Row, row, run
from linkmgr.web.errors import AppError

MAX_ANSWERS = 100_000  # that are kept of an overlay


def splash(user_id: int, splash_id: int | None) -> Row | None:
    return row(
        """
        SELECT title, message, link, counter, banner
          FROM splash_pages
         WHERE user_id = %(user_id)s AND id = %(splash_id)s::bigint
           AND EXISTS (SELECT FROM users WHERE users.id = user_id)
        """,
        user_id=user_id,
        splash_id=splash_id,
    )


def overlay(user_id: int, overlay_id: int | None) -> Row | None:
    return row(
        """
        SELECT id, type, name, message, link, label, position, color, background
          FROM overlays
         WHERE user_id = %(user_id)s AND id = %(overlay_id)s::bigint
           AND EXISTS (SELECT FROM users WHERE users.id = user_id)
        """,
        user_id=user_id,
        overlay_id=overlay_id,
    )


def add_answer(user_id: int, overlay_id: int, *, answer: str) -> None:
    """Keeps an answer, as JSON, as long as the overlay is there and has room for it."""
    overlay = run(
        """
        WITH overlay AS (
            SELECT user_id, id,
                   NOT EXISTS (SELECT FROM overlay_answers WHERE overlay_id = %(overlay_id)s
                               OFFSET %(most)s - 1 LIMIT 1) AS has_room
              FROM overlays
             WHERE user_id = %(user_id)s AND id = %(overlay_id)s
               AND EXISTS (SELECT FROM users WHERE users.id = user_id)
               FOR KEY SHARE),
        added AS (
            INSERT INTO overlay_answers (user_id, overlay_id, answer)
            SELECT user_id, id, %(answer)s::json FROM overlay WHERE has_room)
        SELECT has_room FROM overlay
        """,
        user_id=user_id,
        overlay_id=overlay_id,
        answer=answer,
        most=MAX_ANSWERS,
    )
    if overlay is None:
        raise AppError("no_such_page")
    if not overlay["has_room"]:
        raise AppError("answers_full")
