"""Branded domains."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, row, rows, run
from linkmgr.errors import not_found
from linkmgr.repository.names import run_with_name


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    return page(
        """
        SELECT id, scheme || '://' || host AS domain, redirectroot, redirect404, brandname, brandlogo, brandcolor
          FROM domains
         WHERE user_id = %(user_id)s AND id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'domains'",
        user_id=user_id,
        **paging,
    )


def batch(user_id: int, after: int, limit: int) -> list[Row]:
    return rows(
        """
        SELECT id, scheme || '://' || host AS domain, redirectroot, redirect404, brandname, brandlogo, brandcolor
          FROM domains
         WHERE user_id = %(user_id)s AND id > %(after)s
         ORDER BY id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=limit,
    )


def read(user_id: int, domain_id: int) -> Row:
    domain = row(
        """
        SELECT id, scheme || '://' || host AS domain, redirectroot, redirect404, brandname, brandlogo, brandcolor,
               version::text
          FROM domains
         WHERE user_id = %(user_id)s AND id = %(domain_id)s
        """,
        user_id=user_id,
        domain_id=domain_id,
    )
    if domain is None:
        raise not_found("domain")
    return domain


def add(user_id: int, members: Row) -> Row:
    """Add a domain. `logo` is the image of `brandlogo`, or b"". `is_checked` is True if it points to this service."""
    added = run_with_name(
        """
        INSERT INTO domains (user_id, scheme, host, redirectroot, redirect404, brandname, brandlogo, brandcolor, logo,
                             checked)
        VALUES (%(user_id)s, split_part(%(domain)s, '://', 1), split_part(%(domain)s, '://', 2),
                %(redirectroot)s, %(redirect404)s, %(brandname)s, %(brandlogo)s, %(brandcolor)s,
                nullif(%(logo)s::bytea, ''), CASE WHEN %(is_checked)s THEN now() END)
        RETURNING id, scheme || '://' || host AS domain, redirectroot, redirect404, brandname, brandlogo, brandcolor,
                  version::text
        """,
        user_id=user_id,
        **members,
    )
    assert added is not None
    return added


def update(user_id: int, domain_id: int, members: Row) -> Row:
    """Change a domain. `logo` is the image of `brandlogo`, or b""."""
    updated = run(
        """
        UPDATE domains
           SET redirectroot = coalesce(%(redirectroot)s, redirectroot),
               redirect404 = coalesce(%(redirect404)s, redirect404),
               brandname = coalesce(%(brandname)s, brandname),
               brandlogo = coalesce(%(brandlogo)s, brandlogo),
               brandcolor = coalesce(%(brandcolor)s, brandcolor),
               logo = nullif(coalesce(%(logo)s::bytea, logo), '')
         WHERE user_id = %(user_id)s AND id = %(domain_id)s
        RETURNING id, scheme || '://' || host AS domain, redirectroot, redirect404, brandname, brandlogo, brandcolor,
                  version::text
        """,
        user_id=user_id,
        domain_id=domain_id,
        **members,
    )
    if updated is None:
        raise not_found("domain")
    return updated


def store_check(user_id: int, domain_id: int, *, problem: str) -> None:
    """Store the result of a check. `problem` is "" if the domain points to this service."""
    run(
        """
        UPDATE domains SET checked = now(), problem = %(problem)s
         WHERE user_id = %(user_id)s AND id = %(domain_id)s
        RETURNING id
        """,
        user_id=user_id,
        domain_id=domain_id,
        problem=problem,
    )


def delete(user_id: int, domain_id: int) -> None:
    deleted = run(
        "DELETE FROM domains WHERE user_id = %(user_id)s AND id = %(domain_id)s RETURNING id",
        user_id=user_id,
        domain_id=domain_id,
    )
    if deleted is None:
        raise not_found("domain")
