"""Aliases, campaign slugs and domains, which are unique over all users.

The names of a deleted user are available at once, although background jobs delete the rows later.
"""

from typing import Any

from psycopg2.errors import UniqueViolation

from linkmgr.db.statements import Row, rows, run
from linkmgr.db.transaction import undoable

# Statements by violated constraint. Each releases the name if its owner was deleted, and returns a row unless an
# existing user has it. The tables are of the schema `public`, because restricted keys do not see rows of deleted users.
_RELEASES = {
    "alias_taken": """
        WITH holder AS (
            -- An update of only the domain brings no alias: the link keeps its own.
            SELECT link_id, bio_id
              FROM aliases
             WHERE domain_id = 0
               AND alias = coalesce(nullif(%(alias)s::text, ''),
                                    (SELECT alias FROM links WHERE id = %(link_id)s::bigint))),
        link_deleted AS (
            DELETE FROM public.links
             WHERE id = (SELECT link_id FROM holder) AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)),
        bio_deleted AS (
            DELETE FROM public.bios
             WHERE id = (SELECT bio_id FROM holder) AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id))
        SELECT 1 AS free
         WHERE NOT EXISTS (SELECT FROM users
                            WHERE id = coalesce(
                                (SELECT user_id FROM public.links WHERE id = (SELECT link_id FROM holder)),
                                (SELECT user_id FROM public.bios WHERE id = (SELECT bio_id FROM holder))))
    """,
    "campaign_slug_taken": """
        WITH released AS (
            UPDATE public.campaigns SET slug = NULL
             WHERE slug = %(slug)s AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id))
        SELECT 1 AS free
         WHERE NOT EXISTS (SELECT FROM public.campaigns JOIN users ON users.id = user_id WHERE slug = %(slug)s)
    """,
    # Rename the domain instead of deleting it: links may still refer to it.
    "domain_taken": """
        WITH released AS (
            UPDATE public.domains SET host = id || '.invalid'
             WHERE host = split_part(%(domain)s, '://', 2)
               AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id))
        SELECT 1 AS free
         WHERE NOT EXISTS (SELECT FROM live_domains WHERE host = split_part(%(domain)s, '://', 2))
    """,
}


def release(constraint: str, **params: Any) -> bool:
    """Release a name if its owner was deleted. Return False if the name stays in use."""
    statement = _RELEASES.get(constraint)
    return statement is not None and run(statement, **({"link_id": None} | params)) is not None


def run_with_name(sql: str, **params: Any) -> Row | None:
    """Run a statement that stores the parameter alias, slug or domain, and return its first row. If the name belongs
    to a deleted user, release it and run the statement again."""
    try:
        with undoable():
            return run(sql, **params)
    except UniqueViolation as error:
        if not release(error.diag.constraint_name or "", **params):
            raise
    with undoable():
        return run(sql, **params)


def links_with(words: list[str]) -> list[Row]:
    """Return the `alias` of links that have one of these words, with the host of a branded domain or NULL, and the
    name of their user."""
    return rows(
        """
        SELECT a.alias, d.host, u.username
          FROM aliases a
          JOIN links l ON l.id = a.link_id
          JOIN users u ON u.id = l.user_id
          LEFT JOIN domains d ON d.id = a.domain_id
         WHERE a.alias = ANY (%(words)s::text[])
         ORDER BY a.alias, d.host
         LIMIT 1000
        """,
        words=words,
    )
