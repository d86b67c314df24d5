"""Statements of the console: clicks and labels of a period. Visits of bots are not counted. Times
are those of `periods.as_rollups`."""

from datetime import UTC, datetime
from typing import Unpack

from linkmgr.console import queries
from linkmgr.core.database.paging import Page, Paging, page
from linkmgr.core.database.statements import Row, replica_row, replica_rows
from linkmgr.core.fields.short_urls import short_url
from linkmgr.visits.dimensions import UNKNOWN

MAX_MEMBERS = 25 * queries.MANY  # links and QR codes of the groups of a list


def overview(
    user_id: int,
    *,
    subject: str = "",
    row_id: int = 0,
    dimensions: list[str],
    limit: int,
    buckets: dict[str, str],
    labels: dict[str, str],
) -> list[Row]:
    """Count the clicks of a link or QR code, of the MANY newest of a campaign or channel, or else
    of the account: in each of the buckets, and of the top labels. These have also the clicks in the
    time `before`, which ends at the first edge of `labels`; the time that is shown begins at the
    second. The rows of buckets have an empty `dimension`, and the number of the bucket as label.
    Those with the dimension `total` have all clicks, visitors and conversions, and the one with the
    dimension `first` has the time of the first visit in seconds since the epoch."""
    return replica_rows(
        """
        WITH account AS (SELECT %(user_id)s::bigint AS id WHERE %(subject)s = ''),
        tracked AS (
            SELECT tracked_by(%(user_id)s, %(subject)s, %(row_id)s, %(most)s) AS ids),
        stored AS MATERIALIZED (
            SELECT dimension, label, coalesce(sum(visits) FILTER (WHERE part = 2), 0) AS visits,
                   coalesce(sum(visits) FILTER (WHERE part = 0), 0) AS before
              FROM (SELECT dimension, label, at, visits
                      FROM account,
                           account_counts(id, '{""}' || %(dimensions)s::text[], %(label_since)s,
                                          %(label_until)s, %(label_cuts)s, '{f}')
                     UNION ALL
                    SELECT dimension, label, at, visits
                      FROM tracked,
                           tracked_counts(ids, '{""}' || %(dimensions)s::text[], %(label_since)s,
                                          %(label_until)s, %(label_split)s, '{f}')) labeled,
                   width_bucket(at, %(label_edges)s::timestamptz[]) AS part
             GROUP BY dimension, label),
        counts AS (
            SELECT '' AS dimension, width_bucket(at, %(edges)s::timestamptz[])::text AS label,
                   visits, 0 AS before
              FROM (SELECT at, visits
                      FROM account,
                           account_counts(id, '{""}', %(since)s, %(until)s, %(cuts)s, '{f}')
                     UNION ALL
                    SELECT at, visits
                      FROM tracked,
                           tracked_counts(ids, '{""}', %(since)s, %(until)s, %(split)s,
                                          '{f}')) clicks
             UNION ALL
            SELECT dimension, label, visits, before FROM stored WHERE dimension <> ''
             UNION ALL
            SELECT name, %(unknown)s, sum(CASE dimension WHEN '' THEN visits ELSE -visits END),
                   sum(CASE dimension WHEN '' THEN before ELSE -before END)
              FROM unnest(%(dimensions)s::text[]) AS names (name)
              JOIN stored ON dimension IN ('', name)
             GROUP BY name)
        SELECT dimension, label, clicks::bigint, before::bigint
          FROM (SELECT dimension, label, sum(visits) AS clicks, sum(before) AS before,
                       row_number() OVER (PARTITION BY dimension
                                          ORDER BY sum(visits) DESC, label) AS rank
                  FROM counts
                 GROUP BY dimension, label) ranked
         WHERE dimension = '' OR (rank <= %(limit)s AND clicks > 0)
         UNION ALL
        SELECT 'total', label, total, 0
          FROM tracked, tracked_totals(ids)
         WHERE %(subject)s IN ('campaign', 'channel', 'qr')
         UNION ALL
        SELECT 'total', 'imported', coalesce(sum(imported_clicks), 0)::bigint, 0
          FROM tracked, kept_links
         WHERE user_id = %(user_id)s AND id = ANY (ids) AND %(subject)s IN ('campaign', 'channel')
         UNION ALL
        SELECT 'first', '', extract(epoch FROM at)::bigint, 0
          FROM tracked, first_visit(%(user_id)s, CASE WHEN %(subject)s <> '' THEN ids END) AS at
         WHERE at IS NOT NULL
         ORDER BY dimension, clicks DESC, label
        """,
        user_id=user_id,
        subject=subject,
        row_id=row_id,
        most=queries.MANY,
        dimensions=dimensions,
        unknown=UNKNOWN,
        limit=limit,
        **buckets,
        **{f"label_{name}": value for name, value in labels.items()},
    )


def first_visit(user_id: int, subject: str, row_id: int) -> datetime | None:
    """Return the time since which the visits of a row are counted, as `overview` does."""
    first = replica_row(
        """
        SELECT extract(epoch FROM first_visit(
                   %(user_id)s, tracked_by(%(user_id)s, %(subject)s, %(row_id)s, %(most)s)))::bigint AS at
        """,
        user_id=user_id,
        subject=subject,
        row_id=row_id,
        most=queries.MANY,
    )
    return datetime.fromtimestamp(first["at"], UTC) if first and first["at"] is not None else None


def top_tracked(user_id: int, *, busiest: str | None, limit: int, times: dict[str, str]) -> list[Row]:
    """Count the clicks of the links and QR codes of the account that have most, and return them as
    they are `named` by `label_name` in schema.sql.

    An account has a row for each of them on each day that it was visited, which may be millions.
    With the start of the `busiest` day, only those with the most clicks on the UTC day of its noon
    are compared. Their numbers are exact, but one that has most of its clicks on other days may be
    missing.
    """
    return replica_rows(
        """
        WITH compared AS MATERIALIZED (
            SELECT busiest_targets(
                       %(user_id)s,
                       date_trunc('day', %(busiest)s::timestamptz + interval '12 hours', 'UTC'),
                       %(limit)s + 2) AS ids),
        account AS (
            SELECT %(user_id)s::bigint AS id WHERE %(busiest)s::text IS NULL),
        counts AS (
            SELECT label::bigint AS id, width_bucket(at, %(edges)s::timestamptz[]) AS part, visits
              FROM account, account_counts(id, '{target}', %(since)s, %(until)s, %(cuts)s, '{f}')
             UNION ALL
            SELECT tracked_id, width_bucket(at, %(edges)s::timestamptz[]), visits
              FROM (SELECT ARRAY(SELECT id FROM unnest(ids) AS id WHERE is_kept(id)) AS kept
                      FROM compared) compared,
                   tracked_counts(kept, '{""}', %(since)s, %(until)s, %(split)s, '{f}'))
        SELECT 'target' AS dimension, id::text AS label, clicks, before,
               label_name(%(user_id)s, 'target', id::text) AS named
          FROM (SELECT id, coalesce(sum(visits) FILTER (WHERE part = 2), 0)::bigint AS clicks,
                       coalesce(sum(visits) FILTER (WHERE part = 0), 0)::bigint AS before
                  FROM counts
                 GROUP BY id
                HAVING max(part) = 2
                 ORDER BY clicks DESC, id
                 LIMIT %(limit)s) ranked
         ORDER BY clicks DESC, id
        """,
        user_id=user_id,
        busiest=busiest,
        limit=limit,
        **times,
    )


def of_groups(user_id: int, subject: str, ids: list[int], *, times: dict[str, str]) -> list[Row]:
    """Count the clicks of campaigns, channels or domains in a period and in the time `before`,
    which is null without visits then: those of MANY links and QR codes of each, the newest of a
    campaign or channel, and of MAX_MEMBERS together. Links in the bin are among them."""
    return replica_rows(
        """
        WITH members AS MATERIALIZED (
            SELECT groups.id, tracked_id
              FROM unnest(%(ids)s::bigint[]) AS groups (id),
                   unnest(tracked_by(%(user_id)s, %(subject)s, groups.id, %(many)s)) AS tracked_id
             LIMIT %(most)s),
        counts AS (
            SELECT tracked_id, width_bucket(at, %(edges)s::timestamptz[]) AS part, visits
              FROM tracked_counts(ARRAY(SELECT DISTINCT tracked_id FROM members), '{""}', %(since)s,
                                  %(until)s,
                                  %(split)s, '{f}'))
        SELECT id, coalesce(sum(visits) FILTER (WHERE part = 2), 0)::bigint AS clicks,
               CASE WHEN first_visit(%(user_id)s, NULL) <= %(since)s::timestamptz
                    THEN coalesce(sum(visits) FILTER (WHERE part = 0), 0)::bigint END AS before
          FROM unnest(%(ids)s::bigint[]) AS groups (id)
          LEFT JOIN members USING (id)
          LEFT JOIN counts USING (tracked_id)
         GROUP BY id
        """,
        user_id=user_id,
        subject=subject,
        ids=ids,
        many=queries.MANY,
        most=MAX_MEMBERS,
        **times,
    )


def of_channel(user_id: int, channel_id: int, *, times: Row, days: Row, **paging: Unpack[Paging]) -> Page:
    """List the items of a channel, the last added first, with the clicks and conversions of a
    period, and in `days` the clicks by the number of the day. Bio pages have none."""
    items = page(
        """
        SELECT item.*, clicks, days,
               (SELECT count(*) FROM conversions WHERE tracked_id = tracked
                   AND created >= %(since)s::timestamptz AND created < %(until)s::timestamptz) AS conversions
          FROM (SELECT i.id AS place,
                       CASE WHEN link_id IS NOT NULL THEN 'links' WHEN bio_id IS NOT NULL THEN 'bio'
                            ELSE 'qr' END AS type,
                       coalesce(link_id, bio_id, qr_id) AS id, coalesce(link_id, qr_id) AS tracked,
                       l.url AS longurl, d.domain, coalesce(l.alias, b.alias, 'qr/' || q.code) AS alias,
                       CASE WHEN link_id IS NOT NULL THEN link_title(link_id, l.title)
                            ELSE coalesce(b.name, q.name) END AS title
                  FROM channel_items i
                  LEFT JOIN links l ON l.id = link_id
                  LEFT JOIN domains d ON d.id = l.domain_id
                  LEFT JOIN bios b ON b.id = bio_id
                  LEFT JOIN qrs q ON q.id = qr_id
                 WHERE i.user_id = %(user_id)s AND channel_id = %(channel_id)s
                   AND (qr_id IS NULL OR q.id IS NOT NULL)
                 ORDER BY i.id DESC
                 LIMIT %(limit)s OFFSET %(offset)s) item,
               LATERAL (SELECT coalesce(sum(visits), 0)::bigint AS clicks
                          FROM tracked_counts(ARRAY[tracked], '{""}', %(since)s, %(until)s,
                                              %(split)s, '{f}')) counted,
               LATERAL daily_clicks(tracked, %(day_edges)s::timestamptz[], %(day_since)s,
                                    %(day_until)s, %(day_split)s) AS days
         ORDER BY place DESC
        """,
        """
        SELECT count(*) FROM channel_items
         WHERE user_id = %(user_id)s AND channel_id = %(channel_id)s
           AND (qr_id IS NULL OR EXISTS (SELECT FROM qrs
                                             WHERE user_id = %(user_id)s AND id = qr_id))
        """,
        user_id=user_id,
        channel_id=channel_id,
        **times,
        **{f"day_{name}": value for name, value in days.items()},
        **paging,
    )
    for item in items.rows:
        item["shorturl"] = short_url(item["domain"], item["alias"])
    return items
