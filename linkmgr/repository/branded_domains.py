"""Branded domains, as their visitors see them."""

from linkmgr.core.database.lookups import public_row
from linkmgr.core.database.statements import Row, row
from linkmgr.visits.blocked import blocked


def read(host: str) -> Row | None:
    domain = public_row(
        """
        SELECT d.id, widealiases, CASE WHEN suspended <> 'all' THEN redirectroot ELSE '' END AS redirectroot,
               CASE WHEN suspended <> 'all' THEN redirect404 ELSE '' END AS redirect404,
               EXISTS (SELECT FROM domains other
                        WHERE other.host IN (host_of(d.redirectroot),
                                             host_of(d.redirect404))) AS redirects_branded,
               brandname, brandcolor, logo_digest
          FROM domains d
          JOIN users u ON u.id = d.user_id
         WHERE host = %(host)s
        """,
        host=host,
    )
    return domain and domain | blocked().without_urls(domain)


def logo(host: str) -> bytes | None:
    stored = row(
        """
        SELECT image
          FROM logos
          JOIN live_domains USING (user_id)
         WHERE host = %(host)s AND hash = logo_hash
        """,
        host=host,
    )
    return bytes(stored["image"]) if stored else None
