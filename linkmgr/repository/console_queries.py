"""Statements of the console: what its lists and the pages of groups show of rows, and the rows that forms offer."""

from typing import Unpack

from linkmgr.db.statements import Page, Paging, Row, page, replica_rows, rows
from linkmgr.repository.campaigns import CAMPAIGNS
from linkmgr.repository.channels import CHANNELS
from linkmgr.settings import settings

MANY = 1000  # rows of a group that are counted
_GROUPS = {"campaign": CAMPAIGNS, "channel": CHANNELS}
_PROPOSED_LINKS = """
    (SELECT coalesce(d.domain, %(base)s) || '/' || alias AS url,
            coalesce(nullif(title, ''), l.url) AS name
       FROM links l
       LEFT JOIN domains d ON d.id = l.domain_id
      WHERE l.user_id = %(user_id)s ORDER BY l.id DESC LIMIT %(limit)s)
"""
# By group: the URLs and the names of rows that can be added to it, the newest of each kind.
_PROPOSED = {
    "campaign": _PROPOSED_LINKS,
    "channel": f"""
    {_PROPOSED_LINKS}
     UNION ALL
    (SELECT %(base)s || '/' || alias, name FROM bios
      WHERE user_id = %(user_id)s ORDER BY id DESC LIMIT %(limit)s)
     UNION ALL
    (SELECT %(base)s || '/qr/' || code, name FROM qrs
      WHERE user_id = %(user_id)s ORDER BY id DESC LIMIT %(limit)s)
""",  # noqa: S608 - static SQL
}


def group(user_id: int, kind: str, row_id: int, *, limit: int) -> Row:
    """Return a campaign or a channel, and in `proposed` rows that can be added to it, at most `limit` of each kind."""
    also = f", (SELECT json_agg(p) FROM ({_PROPOSED[kind]}) p) AS proposed"  # noqa: S608 - static SQL
    return _GROUPS[kind].read(user_id, row_id, also, limit=limit)


def _days(tracked_id: str) -> str:
    """Return the clicks of a link or QR code by the number of the day, as SQL."""
    return f"""
        (SELECT coalesce(jsonb_object_agg(day, clicks), '{{}}')
           FROM (SELECT width_bucket(at, %(edges)s::timestamptz[]) AS day, sum(visits) AS clicks
                   FROM tracked_counts(ARRAY[{tracked_id}], '{{""}}', %(since)s, %(until)s, %(split)s, '{{f}}')
                  GROUP BY 1) daily)"""  # noqa: S608 - static SQL


def of_links(user_id: int, ids: list[int], *, most: int, days: dict[str, str]) -> list[Row]:
    """Return the states of links, at most one more than `most` of the channels of each, the time of the last visit, and
    in `days` the clicks by the number of the day. `days` are the times of `periods.as_rollups`."""
    return replica_rows(
        f"""
        SELECT id, password_hash IS NOT NULL AS has_password, coalesce(expires <= now(), false) AS is_expired, type,
               public,
               (SELECT json_agg(named)
                  FROM (SELECT c.id, name, color
                          FROM channel_items i
                          JOIN channels c ON c.user_id = i.user_id AND c.id = channel_id
                         WHERE i.user_id = %(user_id)s AND i.link_id = links.id
                         ORDER BY c.id
                         LIMIT %(most)s + 1) named) AS channels,
               (SELECT coalesce((SELECT max(v.at) FROM visits v
                                  WHERE v.tracked_id = links.id AND NOT v.bot AND v.at >= r.at), r.at)
                  FROM tracked_rollups r
                 WHERE r.tracked_id = links.id AND unit = 'quarter' AND NOT r.bot
                 ORDER BY r.at DESC
                 LIMIT 1) AS visited,
               {_days("links.id")} AS days
          FROM links
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
        """,  # noqa: S608 - static SQL
        user_id=user_id,
        ids=ids,
        most=most,
        **days,
    )


def selected(user_id: int, ids: list[int]) -> list[Row]:
    """Return the links with the names of what they belong to, newest first."""
    return rows(
        """
        SELECT coalesce(host, %(base)s) || '/' || r.alias AS shorturl, longurl, r.title, r.description,
               coalesce((SELECT name FROM campaigns c WHERE c.id = campaign), '') AS campaign,
               array_to_string(ARRAY(SELECT name FROM channels WHERE id = ANY (channel) ORDER BY id), ', ') AS channels,
               CASE WHEN public THEN 'public' ELSE 'private' END AS status, expires AS expiry,
               password_hash IS NOT NULL AS password, clicks, uniqueclicks, date
          FROM link_records r
          JOIN links l USING (user_id, id)
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
         ORDER BY id DESC
        """,
        user_id=user_id,
        ids=ids,
        base=settings().base_url,
    )


def of_codes(user_id: int, ids: list[int], *, days: dict[str, str]) -> list[Row]:
    """Return the types, data and colors of QR codes, and in `days` the scans by the number of the day."""
    return replica_rows(
        f"""
        SELECT id, type, data, foreground, background,
               {_days("qrs.id")} AS days
          FROM qrs
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
        """,  # noqa: S608 - static SQL
        user_id=user_id,
        ids=ids,
        **days,
    )


def of_campaign(user_id: int, campaign_id: int, *, days: dict[str, str], **paging: Unpack[Paging]) -> Page:
    """List the newest links of a campaign by clicks, at most MANY, and in `days` the clicks by the number of the day.
    The total is at most one more."""
    return page(
        f"""
        SELECT *, {_days("members.id")} AS days
          FROM (SELECT l.id, coalesce(d.domain, %(base)s::text) || '/' || alias AS shorturl,
                       url AS longurl, title, coalesce(clicks, 0) AS clicks, public,
                       coalesce(expires <= now(), false) AS is_expired
                  FROM (SELECT *
                          FROM links
                         WHERE user_id = %(user_id)s AND campaign_id = %(campaign_id)s
                         ORDER BY id DESC
                         LIMIT %(most)s) l
                  LEFT JOIN domains d ON d.id = l.domain_id
                  -- OFFSET keeps PostgreSQL from reading the totals of all users.
                  LEFT JOIN LATERAL (SELECT clicks FROM totals WHERE tracked_id = l.id OFFSET 0) counted ON true
                 ORDER BY clicks DESC NULLS LAST, l.id DESC
                 LIMIT %(limit)s OFFSET %(offset)s) members
        """,  # noqa: S608 - static SQL
        """
        SELECT count(*)
          FROM (SELECT FROM links WHERE user_id = %(user_id)s AND campaign_id = %(campaign_id)s
                 LIMIT %(most)s + 1) counted
        """,
        user_id=user_id,
        campaign_id=campaign_id,
        most=MANY,
        **days,
        base=settings().base_url,
        **paging,
    )


MAX_CHOICES = 200  # of a kind
# By kind of what a link can refer to: its table, and the SQL of the name.
CHOICES = {
    "domain": ("domains", "domain"),
    "campaign": ("campaigns", "name"),
    "channel": ("channels", "name"),
    "pixel": ("pixels", "name"),
    "splash": ("splash_pages", "name"),
    "overlay": ("overlays", "name"),
}
_CHOICES = " UNION ALL ".join(
    f"""
    (SELECT '{kind}' AS kind, id, {name} AS name FROM {table}
      WHERE user_id = %(user_id)s ORDER BY id DESC LIMIT %(limit)s)
    """  # noqa: S608 - static SQL
    for kind, (table, name) in CHOICES.items()
)


def choices(user_id: int) -> dict[str, dict[str, str]]:
    """Return the names of the rows that a link can refer to, the newest of each kind, by kind and id."""
    named: dict[str, dict[str, str]] = {kind: {} for kind in CHOICES}
    for row in replica_rows(_CHOICES, user_id=user_id, limit=MAX_CHOICES):
        named[row["kind"]][str(row["id"])] = row["name"]
    return named


def _count(rows: str) -> str:
    """Return the number of rows, at most `limit`, as SQL."""
    return f"(SELECT count(*) FROM (SELECT FROM {rows} AND user_id = %(user_id)s LIMIT %(limit)s) used)"  # noqa: S608


_USES = f"""
    SELECT requested.id, d.checked, d.problem,
           CASE %(kind)s
           WHEN 'channel' THEN {_count("channel_items WHERE channel_id = requested.id")}
           WHEN 'campaign' THEN {_count("links WHERE campaign_id = requested.id")}
           WHEN 'bio' THEN (SELECT json_array_length(links) FROM bios
                             WHERE user_id = %(user_id)s AND id = requested.id)
           WHEN 'pixel' THEN {_count("links WHERE pixel_ids @> ARRAY[requested.id]")}
           WHEN 'splash' THEN {_count("links WHERE splash_id = requested.id")}
           WHEN 'overlay' THEN {_count("links WHERE overlay_id = requested.id")}
           WHEN 'domain' THEN {_count("links WHERE domain_id = requested.id")} END AS uses,
           CASE WHEN %(kind)s = 'overlay'
                THEN {_count("overlay_answers WHERE overlay_id = requested.id")} END AS answers
      FROM unnest(%(ids)s::bigint[]) AS requested (id)
      LEFT JOIN domains d ON %(kind)s = 'domain' AND d.user_id = %(user_id)s AND d.id = requested.id
"""  # noqa: S608


def uses(user_id: int, ids: list[int], *, kind: str) -> list[Row]:
    """Count what uses the rows of a kind, at most one more than MANY for each: the items of channels, else links.
    Overlays also have the number of `answers`, and domains the result of the last check."""
    return replica_rows(_USES, user_id=user_id, ids=ids, kind=kind, limit=MANY + 1)
