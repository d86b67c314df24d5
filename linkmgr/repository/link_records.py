"""Links as clients see them: single ones with their statistics, and batches with every member of a
body."""

from collections.abc import Callable
from typing import Any

from linkmgr.core.database.statements import Row, replica_row, row, rows, timestamp
from linkmgr.core.database.tables import BATCH
from linkmgr.core.errors import existing
from linkmgr.core.fields.short_urls import ShortUrl, short_url
from linkmgr.core.settings import settings
from linkmgr.repository.link_lists import UNCHECKED, to_health
from linkmgr.visits import store
from linkmgr.visits.dimensions import SCAN

STORED = (
    "password_hash",
    "plain",
    "source_host",
    "source_clicks",
    "experiments",
)  # columns of which only an export has the values
_UNRELATED: Row = {"domain": None, "campaign": None, "pixels": [], "channel": []}


def read_from_replica(user_id: int, link_id: int, *, statistics: bool = True) -> Row:
    return _read(replica_row, user_id, link_id, statistics=statistics)


def read(user_id: int, link_id: int) -> Row:
    return _read(row, user_id, link_id)


def _read(fetch: Callable[..., Row | None], user_id: int, link_id: int, *, statistics: bool = True) -> Row:
    """Read the link as one JSON value, which takes less than half of the time of 40 columns."""
    stored = fetch(
        """
        SELECT to_json(l) AS link, clicks, visitors, top_labels
          FROM link_details l
          LEFT JOIN totals ON tracked_id = CASE WHEN %(statistics)s::boolean THEN id END
         WHERE user_id = %(user_id)s AND id = %(link_id)s
        """,
        user_id=user_id,
        link_id=link_id,
        statistics=statistics,
    )
    totals = existing(stored, "link")
    return to_record(totals | totals.pop("link"), statistics=statistics)


def read_named(user_id: int, link_id: int, event: str | None = None) -> Row:
    """Return a link whose campaign and channels have their names, its `old_short_urls`, of its
    clicks those that are `scans`, `counts`: of its `experiments` those of `totals` in schema.sql,
    and `converted`: its conversions, of one `event` if it is not None."""
    stored = row(
        """
        SELECT l.*, clicks, visitors, top_labels, t.experiments AS counts,
               (SELECT json_agg(c) FROM link_conversions(%(user_id)s, l.id, %(event)s) c) AS converted,
               link_state(l.id, starts, expiry, maxclicks, blocked) AS state,
               (SELECT blocked_host_of(p) FROM public.links p WHERE p.id = l.id) AS blocked_host,
               (SELECT json_build_object('id', id, 'name', name) FROM campaigns
                 WHERE user_id = %(user_id)s AND id = (related ->> 'campaign')::bigint) AS campaign,
               (SELECT json_agg(json_build_object('id', id, 'name', name, 'color', color)
                                ORDER BY id) FROM channels
                 WHERE user_id = %(user_id)s
                   AND id IN (SELECT value::bigint
                                FROM json_array_elements_text(related -> 'channel'))) AS channel,
               (SELECT json_agg(json_build_object(
                           'alias', a.alias, 'domain_id', a.domain_id, 'domain', d.domain,
                           'until', nullif(until, 'infinity')) ORDER BY d.domain, a.alias)
                  FROM aliases a
                  LEFT JOIN domains d ON d.id = a.domain_id
                 WHERE link_id = l.id AND until > now()
                   AND (a.domain_id = 0 OR d.id IS NOT NULL)) AS old_short_urls
          FROM link_details l
          LEFT JOIN totals t ON tracked_id = l.id
         WHERE l.user_id = %(user_id)s AND l.id = %(link_id)s
        """,
        user_id=user_id,
        link_id=link_id,
        event=event,
    )
    link = existing(stored, "link")
    scans = ((link["top_labels"] or {}).get("kind") or {}).get(SCAN, 0)
    if link["blocked_host"]:
        link["state"] = "blocked"
    named = {name: link[name] for name in ("campaign", "channel", "state", "blocked_host")}
    named["old_short_urls"] = [
        old | {"shorturl": short_url(old["domain"], old["alias"]), "until": timestamp(old["until"])}
        for old in link["old_short_urls"] or ()
    ]
    return to_record(link) | named | {"scans": scans, "counts": link["counts"] or {}}


def find_by_short_url(user_id: int, short: ShortUrl) -> Row | None:
    link = replica_row(
        """
        SELECT l.*, clicks, visitors, top_labels
          FROM link_details l
          LEFT JOIN totals ON tracked_id = id
         WHERE user_id = %(user_id)s
           AND id = (SELECT link_id FROM alias_at(%(host)s, %(alias)s))
        """,
        user_id=user_id,
        alias=short.alias,
        host=short.host,
    )
    return link and to_record(link)


def to_record(link: Row, *, statistics: bool = True) -> Row:
    """Return the record of a link from its columns, or from the JSON that PostgreSQL has made of
    them."""
    related = link["related"] or _UNRELATED
    domain = related["domain"] or settings().base_url
    totals = (
        {"statistics": store.statistics(link) if link["clicks"] else store.NO_VISITS} if statistics else {}
    )
    return (
        link
        | totals
        | {
            "version": str(link["version"]),
            "longurl": link["url"],
            "location": link["geotarget"],
            "device": link["devicetarget"],
            "maxclicks": link["maxclicks"] or 0,
            "starts": timestamp(link["starts"]),
            "expiry": timestamp(link["expiry"]),
            "blocked": timestamp(link["blocked"]),
            "date": timestamp(link["created"]),
            "updated": timestamp(link["updated"]),
            "health": to_health(link["health"]) if link.get("health") else UNCHECKED,
            "custom": link["alias"] if link["custom"] else "",
            "haspassword": link["password_hash"] is not None,
            "type": related.get("type", link["type"]),
            "parameters": [{"name": name, "value": value} for name, value in link["parameters"]],
            "domain": domain,
            "campaign": related["campaign"],
            "pixels": related["pixels"],
            "channel": related["channel"],
            "shorturl": short_url(domain, link["alias"]),
            "geotarget": targets("location", link["geotarget"]),
            "devicetarget": targets("device", link["devicetarget"]),
            "languagetarget": targets("language", link["languagetarget"]),
        }
    )


def targets(selector: str, urls: dict[str, str]) -> list[dict[str, Any]]:
    return [{selector: label, "link": url} for label, url in urls.items()]


def batch(user_id: int, after: int) -> list[Row]:
    """Return the next links behind an id, oldest first: the members of a record, the names of their
    channels, and what only the export of an account contains. A batch joins the domains, so that a
    link with only a domain has no `related`."""
    links = rows(
        """
        SELECT l.*, d.domain, health, coalesce(clicks, 0) AS clicks,
               coalesce(visitors, 0) AS uniqueclicks, url_only AND l.key_id IS NULL AS plain,
               ARRAY(SELECT name FROM channel_items i JOIN channels c ON c.user_id = i.user_id
                        AND c.id = channel_id
                      WHERE i.user_id = l.user_id AND i.link_id = l.id
                      ORDER BY channel_id) AS channels,
               CASE WHEN num_nonnulls(campaign, splash_id, overlay_id, pixels) > 0
                      OR EXISTS (SELECT FROM channel_items i WHERE i.user_id = l.user_id
                                    AND i.link_id = l.id)
                    THEN link_references(l.user_id, l.id) END AS related
          FROM links l
          LEFT JOIN domains d ON d.id = l.domain_id
          LEFT JOIN totals t ON t.tracked_id = l.id
          LEFT JOIN link_health h ON h.link_id = l.id
         WHERE l.user_id = %(user_id)s AND l.id > %(after)s
         ORDER BY l.id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=BATCH,
    )
    for link in links:
        link["related"] = link["related"] or _UNRELATED | {"domain": link["domain"]}
    return [to_record(link, statistics=False) for link in links]
