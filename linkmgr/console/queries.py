"""Statements of the console: what its lists and the pages of groups show of rows, and the rows that
forms offer."""

from typing import Unpack

from linkmgr.core.database.paging import Page, Paging, page
from linkmgr.core.database.statements import Row, replica_rows, row, rows
from linkmgr.core.errors import existing
from linkmgr.core.fields.short_urls import short_url
from linkmgr.core.fields.urls import link_name
from linkmgr.repository import campaigns

MANY = 1000  # rows of a group that are counted


def group(user_id: int, path: str, row_id: int, *, limit: int) -> Row:
    """Return a campaign or a channel, in `proposed` the URLs and names of rows that can be added to
    it, the newest of each resource, at most `limit`, and if it has links or QR codes in the bin."""
    read = {"campaign": _campaign, "channel": _channel}[path]
    record = read(user_id, row_id, limit)
    for item in record["proposed"] or ():
        item["name"] = link_name(item["name"], item["url"])
        item["shorturl"] = short_url(item["domain"], item["alias"])
    return record


def _campaign(user_id: int, campaign_id: int, limit: int) -> Row:
    stored = row(
        """
        SELECT *, (SELECT username FROM users WHERE users.id = user_id) AS username, version::text,
               (SELECT json_agg(newest)
                  FROM (SELECT d.domain, alias, link_title(l.id, title) AS name, url
                          FROM links l
                          LEFT JOIN domains d ON d.id = l.domain_id
                         WHERE l.user_id = %(user_id)s
                         ORDER BY l.id DESC
                         LIMIT %(limit)s) newest) AS proposed,
               EXISTS (SELECT FROM binned_links WHERE user_id = %(user_id)s
                          AND campaign = %(campaign_id)s) AS has_binned
          FROM campaigns
         WHERE user_id = %(user_id)s AND id = %(campaign_id)s
        """,
        user_id=user_id,
        campaign_id=campaign_id,
        limit=limit,
    )
    return campaigns.to_record(existing(stored, "campaign"))


def _channel(user_id: int, channel_id: int, limit: int) -> Row:
    stored = row(
        """
        SELECT *, version::text,
               (SELECT json_agg(newest)
                  FROM ((SELECT d.domain, alias, link_title(l.id, title) AS name, url
                           FROM links l
                           LEFT JOIN domains d ON d.id = l.domain_id
                          WHERE l.user_id = %(user_id)s
                          ORDER BY l.id DESC
                          LIMIT %(limit)s)
                         UNION ALL
                        (SELECT NULL, alias, name, '' FROM bios
                          WHERE user_id = %(user_id)s ORDER BY id DESC LIMIT %(limit)s)
                         UNION ALL
                        (SELECT NULL, 'qr/' || code, name, '' FROM qrs
                          WHERE user_id = %(user_id)s ORDER BY id DESC
                          LIMIT %(limit)s)) newest) AS proposed,
               EXISTS (SELECT FROM binned_links WHERE user_id = %(user_id)s
                          AND channel_ids @> ARRAY[%(channel_id)s::bigint]) AS has_binned,
               EXISTS (SELECT FROM channel_items JOIN kept_qrs q ON q.id = qr_id
                        WHERE channel_id = %(channel_id)s AND q.user_id = %(user_id)s
                          AND binned IS NOT NULL) AS has_binned_codes
          FROM channels
         WHERE user_id = %(user_id)s AND id = %(channel_id)s
        """,
        user_id=user_id,
        channel_id=channel_id,
        limit=limit,
    )
    return existing(stored, "channel")


def of_links(user_id: int, ids: list[int], *, most: int, days: dict[str, str]) -> list[Row]:
    """Return the states of links, at most one more than `most` of the channels of each, the time of
    the last visit, the number of conversions, and in `days` the clicks by the number of the day.
    `days` are the times of `periods.as_rollups`."""
    return replica_rows(
        """
        SELECT id, password_hash IS NOT NULL AS has_password, type, status,
               CASE WHEN blocked_host_of(links) IS NULL
                      THEN link_state(id, starts, expiry, maxclicks, blocked)
                    ELSE 'blocked' END AS state,
               (SELECT json_agg(named)
                  FROM (SELECT c.id, name, color
                          FROM channel_items i
                          JOIN channels c ON c.user_id = i.user_id AND c.id = channel_id
                         WHERE i.user_id = %(user_id)s AND i.link_id = links.id
                         ORDER BY c.id
                         LIMIT %(most)s + 1) named) AS channels,
               (SELECT coalesce((SELECT max(v.at) FROM visits v
                                  WHERE v.tracked_id = links.id AND NOT v.bot
                                    AND v.at >= r.at), r.at)
                  FROM (SELECT at + coalesce(quarter, array_upper(quarters, 1))
                                    * interval '15 minutes' AS at
                          FROM account_targets
                         WHERE target = links.id AND NOT bot
                         ORDER BY at DESC
                         LIMIT 1) r) AS visited,
               (SELECT count(*) FROM conversions WHERE tracked_id = links.id) AS conversions,
               daily_clicks(links.id, %(edges)s::timestamptz[], %(since)s, %(until)s,
                            %(split)s) AS days
          FROM links
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
        """,
        user_id=user_id,
        ids=ids,
        most=most,
        **days,
    )


def selected(user_id: int, ids: list[int]) -> list[Row]:
    links = rows(
        """
        SELECT host, r.alias, longurl, link_title(id, r.title) AS shown_title,
               r.description,
               coalesce((SELECT name FROM campaigns c WHERE c.id = r.campaign), '') AS campaign,
               array_to_string(ARRAY(SELECT name FROM channels WHERE id = ANY (channel)
                                      ORDER BY id), ', ') AS channels,
               status, expiry,
               password_hash IS NOT NULL AS password, coalesce(r.imported_clicks, 0) AS imported,
               clicks + coalesce(r.imported_clicks, 0) AS clicks, uniqueclicks AS visitors,
               (SELECT count(*) FROM conversions WHERE tracked_id = l.id) AS conversions,
               date
          FROM link_records r
          JOIN links l USING (user_id, id)
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
         ORDER BY id DESC
        """,
        user_id=user_id,
        ids=ids,
    )
    return [{"shorturl": short_url(link.pop("host"), link.pop("alias"))} | link for link in links]


def of_codes(user_id: int, ids: list[int], *, days: dict[str, str]) -> list[Row]:
    return replica_rows(
        """
        SELECT id, type, data, foreground, background,
               daily_clicks(qrs.id, %(edges)s::timestamptz[], %(since)s, %(until)s,
                            %(split)s) AS days
          FROM qrs
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
        """,
        user_id=user_id,
        ids=ids,
        **days,
    )


def of_campaign(user_id: int, campaign_id: int, *, times: Row, days: Row, **paging: Unpack[Paging]) -> Page:
    """List the newest links of a campaign by the clicks of a period, at most MANY, with its
    conversions, and in `days` the clicks by the number of the day. The total is at most one
    more."""
    links = page(
        """
        SELECT members.*,
               (SELECT count(*) FROM conversions WHERE tracked_id = members.id
                   AND created >= %(since)s::timestamptz AND created < %(until)s::timestamptz) AS conversions,
               daily_clicks(members.id, %(day_edges)s::timestamptz[], %(day_since)s, %(day_until)s,
                            %(day_split)s) AS days
          FROM (SELECT l.id, d.domain, alias, url AS longurl, coalesce(clicks, 0) AS clicks,
                       link_title(l.id, title) AS title,
                       status, link_state(l.id, starts, expiry, maxclicks, blocked) AS state
                  FROM matches l
                  LEFT JOIN domains d ON d.id = l.domain_id
                  LEFT JOIN (SELECT tracked_id, sum(visits)::bigint AS clicks
                               FROM tracked_counts(ARRAY(SELECT id FROM matches), '{""}', %(since)s,
                                                   %(until)s, %(split)s, '{f}')
                              GROUP BY tracked_id) counted ON tracked_id = l.id
                 ORDER BY clicks DESC, l.id DESC
                 LIMIT %(limit)s OFFSET %(offset)s) members
         ORDER BY clicks DESC, members.id DESC
        """,
        """
        SELECT count(*)
          FROM (SELECT FROM links WHERE user_id = %(user_id)s AND campaign = %(campaign_id)s
                 LIMIT %(most)s + 1) counted
        """,
        matches="""
        SELECT id, domain_id, alias, url, title, status, starts, expiry, maxclicks, blocked
          FROM links
         WHERE user_id = %(user_id)s AND campaign = %(campaign_id)s
         ORDER BY id DESC
         LIMIT %(most)s
        """,
        user_id=user_id,
        campaign_id=campaign_id,
        most=MANY,
        **times,
        **{f"day_{name}": value for name, value in days.items()},
        **paging,
    )
    for link in links.rows:
        link["shorturl"] = short_url(link["domain"], link["alias"])
    return links


CHOICES = ("domain", "campaign", "channel", "pixel", "splash", "overlay", "utm")  # what forms of links offer
MAX_CHOICES = 200  # of a resource


def choices(user_id: int) -> dict[str, dict[str, str]]:
    newest = replica_rows(
        """
        (SELECT 'domain' AS path, id, domain AS name FROM domains
          WHERE user_id = %(user_id)s ORDER BY id DESC LIMIT %(limit)s)
         UNION ALL
        (SELECT 'utm', id, name FROM utm_templates WHERE user_id = %(user_id)s ORDER BY id DESC
          LIMIT %(limit)s)
         UNION ALL
        (SELECT 'campaign', id, name FROM campaigns WHERE user_id = %(user_id)s ORDER BY id DESC
          LIMIT %(limit)s)
         UNION ALL
        (SELECT 'channel', id, name FROM channels WHERE user_id = %(user_id)s ORDER BY id DESC
          LIMIT %(limit)s)
         UNION ALL
        (SELECT 'pixel', id, name FROM pixels WHERE user_id = %(user_id)s ORDER BY id DESC
          LIMIT %(limit)s)
         UNION ALL
        (SELECT 'splash', id, name FROM splash_pages WHERE user_id = %(user_id)s ORDER BY id DESC
          LIMIT %(limit)s)
         UNION ALL
        (SELECT 'overlay', id, name FROM overlays WHERE user_id = %(user_id)s ORDER BY id DESC
          LIMIT %(limit)s)
        """,
        user_id=user_id,
        limit=MAX_CHOICES,
    )
    named: dict[str, dict[str, str]] = {path: {} for path in CHOICES}
    for choice in newest:
        named[choice["path"]][str(choice["id"])] = choice["name"]
    return named


def uses(user_id: int, ids: list[int], *, path: str) -> list[Row]:
    """Count what uses the rows of a resource, at most one more than MANY for each: the items of
    channels, else links. Overlays also have the number of `answers`, and domains the result of the
    last check, and the number of links of theirs that were `imported` to our own host."""
    return replica_rows(
        """
        SELECT requested.id, d.checked, d.problem,
               CASE %(path)s
               WHEN 'channel' THEN (SELECT count(*) FROM (
                    SELECT FROM channel_items
                     WHERE channel_id = requested.id AND user_id = %(user_id)s
                       AND (qr_id IS NULL OR EXISTS (SELECT FROM qrs
                                                         WHERE user_id = %(user_id)s AND id = qr_id))
                     LIMIT %(limit)s) used)
               WHEN 'campaign' THEN (SELECT count(*) FROM (
                    SELECT FROM links
                     WHERE campaign = requested.id AND user_id = %(user_id)s LIMIT %(limit)s) used)
               WHEN 'bio' THEN (SELECT json_array_length(links) FROM bios
                                 WHERE user_id = %(user_id)s AND id = requested.id)
               WHEN 'pixel' THEN (SELECT count(*) FROM (
                    SELECT FROM links
                     WHERE pixels @> ARRAY[requested.id] AND user_id = %(user_id)s
                     LIMIT %(limit)s) used)
               WHEN 'splash' THEN (SELECT count(*) FROM (
                    SELECT FROM links
                     WHERE splash_id = requested.id AND user_id = %(user_id)s LIMIT %(limit)s) used)
               WHEN 'overlay' THEN (SELECT count(*) FROM (
                    SELECT FROM links
                     WHERE overlay_id = requested.id AND user_id = %(user_id)s
                     LIMIT %(limit)s) used)
               WHEN 'domain' THEN (SELECT count(*) FROM (
                    SELECT FROM links
                     WHERE domain_id = requested.id AND user_id = %(user_id)s
                     LIMIT %(limit)s) used) END AS uses,
               CASE WHEN %(path)s = 'overlay' THEN (SELECT count(*) FROM (
                    SELECT FROM overlay_answers
                     WHERE overlay_id = requested.id AND user_id = %(user_id)s
                     LIMIT %(limit)s) used) END AS answers,
               CASE WHEN %(path)s = 'domain' THEN (SELECT count(*) FROM (
                    SELECT FROM links
                     WHERE user_id = %(user_id)s AND source_host = d.host AND domain_id IS NULL
                     LIMIT %(limit)s) came) END AS imported
          FROM unnest(%(ids)s::bigint[]) AS requested (id)
          LEFT JOIN domains d ON %(path)s = 'domain' AND d.user_id = %(user_id)s
           AND d.id = requested.id
        """,
        user_id=user_id,
        ids=ids,
        path=path,
        limit=MANY + 1,
    )
