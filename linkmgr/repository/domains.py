"""Branded domains."""

from linkmgr.db.statements import Row, run
from linkmgr.repository.names import run_with_name
from linkmgr.repository.tables import Table

DOMAINS = Table(
    "domains",
    "domain",
    """
    id, scheme || '://' || host AS domain, redirectroot, redirect404, brandname, brandlogo, brandcolor, version::text
    """,
    write=run_with_name,
)
index, batch, read, delete = DOMAINS.index, DOMAINS.batch, DOMAINS.read, DOMAINS.delete


def add(user_id: int, members: Row) -> Row:
    """Add a domain. `logo` is the image of `brandlogo`, or b"". `is_checked` is True if it points to this service."""
    sql = """
        INSERT INTO domains (user_id, scheme, host, redirectroot, redirect404, brandname, brandlogo, brandcolor, logo,
                             checked)
        VALUES (%(user_id)s, split_part(%(domain)s, '://', 1), split_part(%(domain)s, '://', 2),
                %(redirectroot)s, %(redirect404)s, %(brandname)s, %(brandlogo)s, %(brandcolor)s,
                nullif(%(logo)s::bytea, ''), CASE WHEN %(is_checked)s THEN now() END)
    """
    return DOMAINS.add(sql, user_id, members)


def update(user_id: int, domain_id: int, members: Row) -> Row:
    """Change a domain. `logo` is the image of `brandlogo`, or b""."""
    sql = """
        UPDATE domains
           SET redirectroot = coalesce(%(redirectroot)s, redirectroot),
               redirect404 = coalesce(%(redirect404)s, redirect404),
               brandname = coalesce(%(brandname)s, brandname),
               brandlogo = coalesce(%(brandlogo)s, brandlogo),
               brandcolor = coalesce(%(brandcolor)s, brandcolor),
               logo = nullif(coalesce(%(logo)s::bytea, logo), '')
         WHERE user_id = %(user_id)s AND id = %(row_id)s
    """
    return DOMAINS.change(sql, user_id, domain_id, members)


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
