from typing import Unpack

from linkmgr.core.database.paging import NamedPaging, Page, Paging, named_page, page
from linkmgr.core.database.statements import Row, row, run, run_one
from linkmgr.core.database.tables import batch_of
from linkmgr.core.errors import AppError, existing, required

MAX_ANSWERS = 100_000  # per overlay
MAX_ANSWER = 16 << 10  # bytes of one; the longest form has 9 KiB

batch = batch_of("overlays")


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    return named_page(
        """
        SELECT id, type, name, created AS date, updated, version::text FROM overlays
         WHERE user_id = %(user_id)s AND has_text(name, %(q)s)
        """,
        counted="overlays",
        user_id=user_id,
        **paging,
    )


def read(user_id: int, overlay_id: int) -> Row:
    stored = row(
        "SELECT *, created AS date, version::text FROM overlays WHERE user_id = %(user_id)s AND id "
        "= %(overlay_id)s",
        user_id=user_id,
        overlay_id=overlay_id,
    )
    return existing(stored, "overlay")


def add(user_id: int, members: Row) -> Row:
    return run_one(
        """
        WITH added AS (
            INSERT INTO overlays (user_id, type, name, message, link, label, position, color,
                                  background)
            VALUES (%(user_id)s, %(type)s, %(name)s, %(message)s, %(link)s, %(label)s,
                    %(position)s, %(color)s, %(background)s)
            RETURNING *)
        SELECT *, created AS date, version::text
          FROM added
         WHERE require_unblocked(user_id, to_jsonb(added))
        """,
        **members,
        user_id=user_id,
    )


def update(user_id: int, overlay_id: int, members: Row) -> Row:
    updated = run(
        """
        WITH updated AS (
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
            RETURNING *)
        SELECT u.*, u.created AS date, u.version::text
          FROM updated u
          JOIN overlays before USING (id)
         WHERE require_unblocked(u.user_id, to_jsonb(u), to_jsonb(before))
        """,
        **members,
        user_id=user_id,
        overlay_id=overlay_id,
    )
    return existing(updated, "overlay")


def delete(user_id: int, overlay_id: int) -> None:
    deleted = run(
        "DELETE FROM overlays WHERE user_id = %(user_id)s AND id = %(overlay_id)s RETURNING id",
        user_id=user_id,
        overlay_id=overlay_id,
    )
    existing(deleted, "overlay")


# --- answers


def answers(user_id: int, overlay_id: int, **paging: Unpack[Paging]) -> Page:
    sent = page(
        """
        SELECT id, answer, created AS date
          FROM overlay_answers
         WHERE overlay_id = (SELECT id FROM overlays WHERE user_id = %(user_id)s
                                AND id = %(overlay_id)s)
           AND id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        """
        SELECT count(*) FROM overlay_answers
         WHERE overlay_id = (SELECT id FROM overlays WHERE user_id = %(user_id)s
                                AND id = %(overlay_id)s)
        """,
        user_id=user_id,
        overlay_id=overlay_id,
        **paging,
    )
    if not sent.total:
        read(user_id, overlay_id)  # raises not_found
    return sent


def form(user_id: int, overlay_id: int) -> Row | None:
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
    """`answer` is JSON text. Raise an error if the overlay was deleted or has MAX_ANSWERS answers.
    FOR KEY SHARE waits for a concurrent delete, so that no answer to a deleted overlay is
    stored."""
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
            SELECT user_id, id, %(answer)s::json FROM overlay WHERE accepts_answers
            RETURNING *),
        events_added AS (
            INSERT INTO outbox (user_id, type, object_id, data)
            SELECT user_id, 'answer.received', id, to_jsonb(added)
              FROM added
             WHERE has_webhooks(user_id))
        SELECT accepts_answers FROM overlay
        """,
        user_id=user_id,
        overlay_id=overlay_id,
        answer=answer,
        max_answers=MAX_ANSWERS,
    )
    if not required(overlay, "no_such_page")["accepts_answers"]:
        raise AppError("answers_full")
