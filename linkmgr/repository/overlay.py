"""CTA overlays, and the answers that visitors sent."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, row, run
from linkmgr.repository.colors import run_with_colors
from linkmgr.web.errors import not_found


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


def read(user_id: int, overlay_id: int) -> Row:
    overlay = row(
        """
        SELECT id, type, name, message, link, label, position, color, background, created AS date, xmin::text AS version
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


def add(
    user_id: int,
    *,
    type: str,  # noqa: A002 - the API's name
    name: str,
    message: str = "",
    link: str = "",
    label: str = "",
    position: str = "bottom",
    color: str = "#ffffff",
    background: str = "#1d4ed8",
) -> int:
    added = run_with_colors(
        """
        INSERT INTO overlays (user_id, type, name, message, link, label, position, color, background)
        VALUES (%(user_id)s, %(type)s, %(name)s, %(message)s, %(link)s, %(label)s, %(position)s, %(color)s,
                %(background)s)
        RETURNING id
        """,
        user_id=user_id,
        type=type,
        name=name,
        message=message,
        link=link,
        label=label,
        position=position,
        color=color,
        background=background,
    )
    assert added is not None
    return int(added["id"])


def update(
    user_id: int,
    overlay_id: int,
    *,
    type: str | None = None,  # noqa: A002 - the API's name
    name: str | None = None,
    message: str | None = None,
    link: str | None = None,
    label: str | None = None,
    position: str | None = None,
    color: str | None = None,
    background: str | None = None,
    checked: Row | None = None,
) -> Row | None:
    """Write the members that were sent. With `checked`, return None unless type and message are still its own."""
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
        RETURNING id, type, name, message, link, label, position, color, background, created AS date,
                  xmin::text AS version
        """,
        user_id=user_id,
        overlay_id=overlay_id,
        type=type,
        name=name,
        message=message,
        link=link,
        label=label,
        position=position,
        color=color,
        background=background,
        checked_type=checked and checked["type"],
        checked_message=checked and checked["message"],
    )
    if updated is None and checked is None:
        raise not_found("overlay")
    return updated


def delete(user_id: int, overlay_id: int) -> None:
    """Delete an overlay and its answers. Its links remain and redirect directly."""
    deleted = run(
        "DELETE FROM overlays WHERE user_id = %(user_id)s AND id = %(overlay_id)s RETURNING id",
        user_id=user_id,
        overlay_id=overlay_id,
    )
    if deleted is None:
        raise not_found("overlay")
