"""Names that are unique over all users: aliases, campaign slugs and domains. Those of a deleted
user are available at once, although background jobs delete the rows later."""

from typing import Any

from psycopg2 import IntegrityError

from linkmgr.core.database.statements import Row, rows, run

# Statements by violated constraint. Each releases the names whose owner was deleted, and returns a
# row if it did. The tables are of the schema `public`, because restricted keys do not see rows of
# deleted users. Arrays are found by index, also by a plan that was made for empty tables.
_RELEASES = {
    "alias_taken": """
        WITH holders AS (
            -- An update of only the domain brings no alias: the link keeps its own.
            SELECT link_id, bio_id
              FROM aliases
             WHERE domain_id = 0
               AND alias = ANY (ARRAY(
                       SELECT alias_key(sent, 0) FROM unnest(%(aliases)s::text[]) AS sent
                        UNION ALL
                       SELECT alias_key(alias, 0) FROM links WHERE id = %(link_id)s::bigint))),
        links_deleted AS (
            DELETE FROM public.links
             WHERE id = ANY (ARRAY(SELECT link_id FROM holders))
               AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
            RETURNING 1),
        binned_deleted AS (
            DELETE FROM public.binned_links
             WHERE id = ANY (ARRAY(SELECT link_id FROM holders))
               AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
            RETURNING 1),
        bios_deleted AS (
            DELETE FROM public.bios
             WHERE id = ANY (ARRAY(SELECT bio_id FROM holders))
               AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
            RETURNING 1)
        SELECT 1 FROM links_deleted UNION ALL SELECT 1 FROM binned_deleted UNION ALL SELECT 1
          FROM bios_deleted
    """,
    "campaign_slug_taken": """
        UPDATE public.campaigns SET slug = NULL
         WHERE slug = %(slug)s AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
        RETURNING 1
    """,
    # Rename the domain instead of deleting it: links may still refer to it.
    "domain_taken": """
        UPDATE public.domains SET host = id || '.invalid'
         WHERE host = split_part(%(domain)s, '://', 2)
           AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
        RETURNING 1
    """,
}


def release(constraint: str | None, **params: Any) -> bool:
    """Release the names that violate a constraint if their owner was deleted. Return False if there
    are none."""
    statement = _RELEASES.get(constraint or "")
    return statement is not None and run(statement, **params) is not None


def release_name(violation: IntegrityError, params: Row) -> bool:
    own = {"aliases": [params.get("alias")], "link_id": params.get("link_id")}
    return release(violation.diag.constraint_name, **params | own)


def hidden_links(own: list[str], foreign: list[str]) -> list[Row]:
    """Return links with aliases that are reserved: on our own host, or on branded domains, which
    have some of these only."""
    return rows(
        """
        SELECT a.alias, d.host, u.username
          FROM aliases a
          JOIN links l ON l.id = a.link_id
          JOIN users u ON u.id = l.user_id
          LEFT JOIN domains d ON d.id = a.domain_id
         WHERE a.alias = ANY (%(own)s::text[])
           AND (a.domain_id = 0 OR a.alias = ANY (%(foreign)s::text[]))
         ORDER BY a.alias, d.host
         LIMIT 1000
        """,
        own=own,
        foreign=foreign,
    )
