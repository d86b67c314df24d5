from linkmgr.core.database.lookups import public_row


def longest(host: str | None, aliases: list[str]) -> str | None:
    """Return the longest of the aliases that is one of a link with `extrapath`, or None."""
    extended = public_row(
        """
        SELECT sent.alias
          FROM (SELECT CASE WHEN %(host)s::text IS NULL THEN 0
                            ELSE (SELECT id FROM domains WHERE host = %(host)s) END AS id) domain,
               unnest(%(aliases)s::text[]) AS sent (alias),
               aliases a
          JOIN links l ON l.id = a.link_id
          JOIN users u ON u.id = l.user_id
         WHERE a.alias = alias_key(sent.alias, domain.id) AND a.domain_id = domain.id AND l.extrapath
           AND (a.until IS NULL OR a.until > now())
         ORDER BY length(sent.alias) DESC LIMIT 1
        """,
        host=host,
        aliases=aliases,
    )
    return str(extended["alias"]) if extended else None
