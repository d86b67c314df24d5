"""Branded domains."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, row, run
from linkmgr.repository.names import run_with_name
from linkmgr.web.errors import not_found


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    return page(
        """
        SELECT id, scheme || '://' || host AS domain, redirectroot, redirect404
          FROM domains
         WHERE user_id = %(user_id)s AND id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'domains'",
        user_id=user_id,
        **paging,
    )


def read(user_id: int, domain_id: int) -> Row:
    domain = row(
        """
        SELECT id, scheme || '://' || host AS domain, redirectroot, redirect404, xmin::text AS version
          FROM domains
         WHERE user_id = %(user_id)s AND id = %(domain_id)s
        """,
        user_id=user_id,
        domain_id=domain_id,
    )
    if domain is None:
        raise not_found("domain")
    return domain


def add(user_id: int, *, domain: str, redirectroot: str = "", redirect404: str = "") -> int:
    added = run_with_name(
        """
        INSERT INTO domains (user_id, scheme, host, redirectroot, redirect404)
        VALUES (%(user_id)s, split_part(%(domain)s, '://', 1), split_part(%(domain)s, '://', 2),
                %(redirectroot)s, %(redirect404)s)
        RETURNING id
        """,
        user_id=user_id,
        domain=domain,
        redirectroot=redirectroot,
        redirect404=redirect404,
    )
    assert added is not None
    return int(added["id"])


def update(user_id: int, domain_id: int, *, redirectroot: str | None = None, redirect404: str | None = None) -> Row:
    updated = run(
        """
        UPDATE domains
           SET redirectroot = coalesce(%(redirectroot)s, redirectroot),
               redirect404 = coalesce(%(redirect404)s, redirect404)
         WHERE user_id = %(user_id)s AND id = %(domain_id)s
        RETURNING id, scheme || '://' || host AS domain, redirectroot, redirect404, xmin::text AS version
        """,
        user_id=user_id,
        domain_id=domain_id,
        redirectroot=redirectroot,
        redirect404=redirect404,
    )
    if updated is None:
        raise not_found("domain")
    return updated


def delete(user_id: int, domain_id: int) -> None:
    deleted = run(
        "DELETE FROM domains WHERE user_id = %(user_id)s AND id = %(domain_id)s RETURNING id",
        user_id=user_id,
        domain_id=domain_id,
    )
    if deleted is None:
        raise not_found("domain")
