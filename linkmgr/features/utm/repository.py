from typing import Unpack

from linkmgr.core.database.paging import NamedPaging, Page, named_page
from linkmgr.core.database.statements import Row, row, run, run_one
from linkmgr.core.database.tables import batch_of
from linkmgr.core.errors import existing

batch = batch_of("utm_templates")


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    return named_page(
        """
        SELECT *, created AS date, version::text FROM utm_templates
         WHERE user_id = %(user_id)s AND has_text(name, %(q)s)
        """,
        counted="utm_templates",
        user_id=user_id,
        **paging,
    )


def read(user_id: int, utm_id: int) -> Row:
    stored = row(
        "SELECT *, created AS date, version::text FROM utm_templates WHERE user_id = %(user_id)s "
        "AND id = %(utm_id)s",
        user_id=user_id,
        utm_id=utm_id,
    )
    return existing(stored, "UTM template")


def add(user_id: int, members: Row) -> Row:
    return run_one(
        """
        INSERT INTO utm_templates (user_id, name, utm_source, utm_medium, utm_campaign, utm_term,
                                   utm_content)
        VALUES (require_room(%(user_id)s, 'utm_templates', 100, 'utm_full'), %(name)s,
                %(utm_source)s, %(utm_medium)s, %(utm_campaign)s, %(utm_term)s, %(utm_content)s)
        RETURNING *, created AS date, version::text
        """,
        **members,
        user_id=user_id,
    )


def update(user_id: int, utm_id: int, members: Row) -> Row:
    updated = run(
        """
        UPDATE utm_templates
           SET name = coalesce(%(name)s, name),
               utm_source = coalesce(%(utm_source)s, utm_source),
               utm_medium = coalesce(%(utm_medium)s, utm_medium),
               utm_campaign = coalesce(%(utm_campaign)s, utm_campaign),
               utm_term = coalesce(%(utm_term)s, utm_term),
               utm_content = coalesce(%(utm_content)s, utm_content)
         WHERE user_id = %(user_id)s AND id = %(utm_id)s
        RETURNING *, created AS date, version::text
        """,
        **members,
        user_id=user_id,
        utm_id=utm_id,
    )
    return existing(updated, "UTM template")


def delete(user_id: int, utm_id: int) -> None:
    deleted = run(
        "DELETE FROM utm_templates WHERE user_id = %(user_id)s AND id = %(utm_id)s RETURNING id",
        user_id=user_id,
        utm_id=utm_id,
    )
    existing(deleted, "UTM template")
