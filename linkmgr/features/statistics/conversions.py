"""Conversions among the figures of statistics. Their labels are those of their visits, copied, so
that they are counted at any age."""

from collections import Counter
from typing import Any

import orjson

from linkmgr.core.database.statements import Row, replica_rows
from linkmgr.features.statistics.query import CURRENCY, OF_CONVERSIONS, Query
from linkmgr.features.statistics.selection import Owner

NONE: Row = {"bucket": None, "a": None, "b": None, "clicks": 0, "visitors": 0, "labels": 0}
MIXED = "Values of several currencies are not added up: send by=currency, or the filter currency."


def with_conversions(
    counted: list[Row], owner: Owner, query: Query, *, limit: int, **params: Any
) -> list[Row]:
    """Add the conversions to the counted clicks of the same bucket and labels. Labels without
    clicks follow if there is room. If there are several currencies, `value` is None in the totals,
    and in the other rows unless each is of one currency."""
    first, second = [*query.dimensions, "", ""][:2]
    of_visits = {name: part.labels for name, part in query.filters.items() if name not in OF_CONVERSIONS}
    params |= {
        "is_filtered": bool(query.filters),
        "filters": orjson.dumps(of_visits).decode() if of_visits else None,
    }
    for name in OF_CONVERSIONS:
        part = query.filters.get(name)
        params |= {f"{name}_in": part and part.included, f"{name}_out": part and part.excluded}
    before = len(query.before)
    added = _count(owner, a=first, b=second, first=before + 1, only_bots=query.bots == "only", **params)
    [totals] = [row for row in added if row["bucket"] is None]
    added.remove(totals)
    rows = {(row["bucket"], row["a"], row["b"]): row for row in counted}
    labels = {key[1:] for key in rows if key[0]}
    sums: Counter[tuple[str, str]] = Counter()
    for row in added:
        sums[row["a"], row["b"]] += row["conversions"] if row["bucket"] > before else 0
    others = sorted(sums.keys() - labels, key=lambda pair: (-sums[pair], pair))
    labels.update(others[: max(0, limit - len(labels))])
    if len(totals["currencies"] or ()) > 1:
        for row in [totals] if CURRENCY in query.by else [totals, *added]:
            row["value"] = None
    for row in (totals, *(row for row in added if (row["a"], row["b"]) in labels)):
        key = row["bucket"], row["a"], row["b"]
        rows[key] = rows.get(key, {}) | row
    rows[None, None, None]["labels"] = max(totals["pairs"], rows[None, None, None].get("labels") or 0)
    return list(rows.values())


def _count(owner: Owner, **query: Any) -> list[Row]:
    """Count the conversions and their value, by at most two dimensions, and all from the bucket
    `first` on, with the number of their `pairs` of labels and their `currencies`."""
    return replica_rows(
        """
        WITH counted AS MATERIALIZED (
            SELECT tracked_id, width_bucket(created, %(edges)s::timestamptz[]) AS bucket, currency,
                   CASE %(a)s WHEN '' THEN '' WHEN 'target' THEN tracked_id::text
                              WHEN 'event' THEN event WHEN 'currency' THEN currency
                              ELSE coalesce(labels ->> %(a)s, 'Unknown') END AS a,
                   CASE %(b)s WHEN '' THEN '' WHEN 'target' THEN tracked_id::text
                              WHEN 'event' THEN event WHEN 'currency' THEN currency
                              ELSE coalesce(labels ->> %(b)s, 'Unknown') END AS b,
                   count(*) AS conversions, sum(value) AS value
              FROM (SELECT stored.*
                      FROM owners(%(user_id)s, %(everyone)s) AS owner,
                           LATERAL (SELECT * FROM conversions
                                     WHERE user_id = owner AND created >= %(since)s::timestamptz
                                       AND created < %(until)s::timestamptz
                                    OFFSET 0) stored  -- not those of all users
                     WHERE %(tracked_ids)s::text IS NULL
                     UNION ALL
                    SELECT stored.*
                      FROM unnest(%(tracked_ids)s::bigint[]) AS tracked (id),
                           LATERAL (SELECT * FROM conversions
                                     WHERE tracked_id = tracked.id
                                       AND created >= %(since)s::timestamptz
                                       AND created < %(until)s::timestamptz OFFSET 0) stored
                     WHERE user_id = %(user_id)s) found
             WHERE NOT %(only_bots)s
               AND CASE WHEN %(is_filtered)s
                   THEN coalesce(lower(event) = ANY (%(event_in)s::text[]), true)
                    AND coalesce(lower(event) <> ALL (%(event_out)s::text[]), true)
                    AND coalesce(lower(currency) = ANY (%(currency_in)s::text[]), true)
                    AND coalesce(lower(currency) <> ALL (%(currency_out)s::text[]), true)
                    AND (%(filters)s::jsonb IS NULL
                         OR visit_passes(jsonb_populate_record(NULL::visits, coalesce(labels, '{}')),
                                         %(filters)s::jsonb))
                   ELSE true END
             GROUP BY 1, 2, 3, 4, 5),
        tracked AS (
            SELECT ARRAY(SELECT DISTINCT tracked_id FROM counted) AS ids,
                   CASE WHEN NOT %(everyone)s THEN %(user_id)s::bigint END AS owner),
        labeled AS MATERIALIZED (
            SELECT bucket, currency, conversions, value,
                   CASE WHEN %(a)s IN ('campaign', 'channel', 'domain')
                        THEN coalesce(of_a.label, '-') ELSE a END AS a,
                   CASE WHEN %(b)s IN ('campaign', 'channel', 'domain')
                        THEN coalesce(of_b.label, '-') ELSE b END AS b
              FROM tracked
             CROSS JOIN counted
              LEFT JOIN LATERAL tracked_labels(owner, ids, %(a)s) of_a
                ON of_a.tracked_id = counted.tracked_id
              LEFT JOIN LATERAL tracked_labels(owner, ids, %(b)s) of_b
                ON of_b.tracked_id = counted.tracked_id)
        SELECT bucket, a, b, sum(conversions)::bigint AS conversions,
               coalesce(sum(value), 0)::float8 AS value, NULL::text[] AS currencies, NULL AS pairs
          FROM labeled
         GROUP BY bucket, a, b
         UNION ALL
        SELECT NULL, NULL, NULL, coalesce(sum(conversions), 0)::bigint,
               coalesce(sum(value), 0)::float8, array_agg(DISTINCT currency) FILTER (WHERE value > 0),
               (SELECT count(DISTINCT (a, b)) FROM labeled WHERE bucket >= %(first)s)
          FROM counted
         WHERE bucket >= %(first)s
        """,
        **owner._asdict(),
        **query,
    )
