"""Branded domains."""

from linkmgr.db.statements import rows, run
from linkmgr.repository.tables import Table, run_with_name

# `logo` is the image of `brandlogo`, or b"". `is_checked` is True if the domain points to this service.
DOMAINS = Table(
    "domains",
    "domain",
    "redirectroot redirect404 brandname brandlogo brandcolor",
    added={
        "scheme": "split_part(%(domain)s, '://', 1)",
        "host": "split_part(%(domain)s, '://', 2)",
        "logo": "nullif(%(logo)s::bytea, '')",
        "checked": "CASE WHEN %(is_checked)s THEN now() END",
    },
    changed={"logo": "nullif(coalesce(%(logo)s::bytea, logo), '')"},
    columns="""
    id, domain, redirectroot, redirect404, brandname, brandlogo, brandcolor, version::text
    """,
    write=run_with_name,
)


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


def logos(user_id: int, ids: list[int]) -> dict[int, str]:
    """The images of the logos of these domains, in base64."""
    records = rows(
        """
        SELECT id, translate(encode(logo, 'base64'), chr(10), '') AS image
          FROM domains
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[]) AND logo IS NOT NULL
        """,
        user_id=user_id,
        ids=ids,
    )
    return {record["id"]: record["image"] for record in records}
