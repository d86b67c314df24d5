"""The scope of statistics: whose visits, of which links and QR codes, and since when there are
details."""

from datetime import UTC, date, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from linkmgr.core.database.statements import Row, row
from linkmgr.core.errors import AppError, not_found
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.urls import is_own_host, link_name
from linkmgr.features.statistics.query import Selection
from linkmgr.visits.store import DETAILED_DAYS


class Owner(NamedTuple):
    user_id: int
    everyone: bool = False
    links: int | None = None  # their number, if it has been read


class Scope(NamedTuple):
    """The facts that a query depends on: see `_read`. `names` are those of what is selected, by its
    parameter, and `first` is the time of the first visit, if they were asked for."""

    tracked_ids: str | None
    detailed_since: datetime | None
    days_before: date
    names: dict[str, str] | None = None
    first: datetime | None = None


def _read(owner: Owner, **selection: Any) -> Row | None:
    """Return the facts that a query depends on, or None if there is no such user.

    `tracked_ids` has the ids of the selected links and QR codes, `ids` the number of existing ids
    in the selection, and `campaign`, `channel` and `domain` are true if they exist.
    `detailed_since` is the start of the retention period, or of the visits that the purge has kept
    if that is later, or NULL if all visits are kept. `days_before` is the first UTC day that has
    rollups by quarter of an hour. With `named`, `names` has the names of what is selected, and
    `first` is the time of the first visit.
    """
    return row(
        """
        WITH selected AS (
            SELECT id, 'ids' AS part FROM tracked_rows
             WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
             UNION ALL
            SELECT id, 'campaign' FROM kept_links
             WHERE user_id = %(user_id)s AND campaign = %(campaign)s::bigint
             UNION ALL
            SELECT coalesce(link_id, qr_id), 'channel' FROM channel_items
             WHERE user_id = %(user_id)s AND channel_id = %(channel)s::bigint AND bio_id IS NULL
             UNION ALL
            SELECT id, 'channel' FROM binned_links
             WHERE user_id = %(user_id)s AND channel_ids @> ARRAY[%(channel)s::bigint]
             UNION ALL
            SELECT id, 'domain' FROM kept_links
             WHERE user_id = %(user_id)s
               AND domain_id = (SELECT id FROM domains WHERE user_id = %(user_id)s
                                   AND host = %(domain)s::text)
             UNION ALL
            SELECT id, 'domain' FROM kept_links
             WHERE user_id = %(user_id)s AND domain_id IS NULL AND %(own_domain)s)
        SELECT chosen.ids::text AS tracked_ids,
               (SELECT count(*) FROM selected WHERE part = 'ids') AS ids,
               CASE WHEN %(named)s THEN (
                    SELECT json_object_agg(part, ARRAY[name, url])
                      FROM (SELECT 'ids' AS part, link_title(id, title) AS name, url
                              FROM links
                             WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[])
                             UNION ALL
                            SELECT 'ids', name, '' FROM qrs WHERE user_id = %(user_id)s
                               AND id = ANY (%(ids)s::bigint[])
                             UNION ALL
                            SELECT 'campaign', name, '' FROM campaigns WHERE user_id = %(user_id)s
                               AND id = %(campaign)s
                             UNION ALL
                            SELECT 'channel', name, '' FROM channels
                             WHERE user_id = %(user_id)s AND id = %(channel)s) named) END AS names,
               CASE WHEN %(named)s THEN first_visit(
                    %(user_id)s, CASE WHEN %(parts)s > 0 THEN chosen.ids END) END AS first,
               EXISTS (SELECT FROM campaigns WHERE user_id = %(user_id)s
                          AND id = %(campaign)s) AS campaign,
               EXISTS (SELECT FROM channels WHERE user_id = %(user_id)s
                          AND id = %(channel)s) AS channel,
               %(own_domain)s OR EXISTS (SELECT FROM domains
                                          WHERE user_id = %(user_id)s
                                            AND host = %(domain)s) AS domain,
               CASE WHEN %(everyone)s
                    THEN greatest((SELECT max(detailed_since) FROM users),
                                  (SELECT now() - make_interval(
                                              days => min(nullif((limits ->> 'retention')::int, 0)))
                                     FROM plans))
                    ELSE greatest(detailed_since,
                                  now() - make_interval(
                                      days => nullif((limits ->> 'retention')::int, 0)))
                    END AS detailed_since,
               (now() AT TIME ZONE 'UTC')::date - %(detailed_days)s::int AS days_before
          FROM accounts,
               (SELECT coalesce(array_agg(id), '{}') AS ids
                  FROM (SELECT id FROM selected GROUP BY id
                        HAVING count(*) = %(parts)s) matched) chosen
         WHERE accounts.id = %(user_id)s
        """,
        **owner._asdict(),
        detailed_days=DETAILED_DAYS,
        **selection,
    )


def _first_visit(owner: Owner, tracked_ids: str | None) -> datetime | None:
    first = row(
        """
        SELECT min(at) AS at
          FROM (SELECT first_visit(owner, NULL, '{f,t}') AS at
                  FROM owners(%(user_id)s, %(everyone)s) AS owner
                 WHERE %(tracked_ids)s::text IS NULL
                 UNION ALL
                SELECT first_tracked_visit(%(tracked_ids)s::bigint[], '{f,t}')) firsts
        """,
        **owner._asdict(),
        tracked_ids=tracked_ids,
    )
    return _parsed(first["at"]) if first and first["at"] else None


def _read_ids(user_id: int, *, ids: list[int] | None) -> Row | None:
    """Return the facts of a selection by `ids` alone, or of the whole account. This takes half of
    the time of `_read`, because PostgreSQL sets up each part of a statement, executed or not."""
    return row(
        """
        SELECT tracked_ids::text, cardinality(tracked_ids) AS ids,
               greatest(detailed_since,
                        now() - make_interval(days => nullif((limits ->> 'retention')::int, 0)))
                   AS detailed_since,
               (now() AT TIME ZONE 'UTC')::date - %(detailed_days)s::int AS days_before
          FROM accounts,
               (SELECT ARRAY(SELECT id FROM tracked_rows
                              WHERE user_id = %(user_id)s
                                AND id = ANY (%(ids)s::bigint[])) AS tracked_ids
                OFFSET 0) selected
         WHERE id = %(user_id)s
        """,
        user_id=user_id,
        ids=ids,
        detailed_days=DETAILED_DAYS,
    )


def _parsed(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def read(owner: Owner, selection: Selection, *, named: bool = False) -> Scope:
    """Read the facts, and raise an error if a selected row does not exist or is another user's.
    With `named`, read the names of the selected rows and the time of the first visit too."""
    if owner.everyone and selection.count:
        raise invalid(
            "user=all counts everything: send it without ids, campaign, channel, domain", field="user"
        )
    members = {"ids": selection.ids, "campaign": selection.campaign, "channel": selection.channel}
    if named or owner.everyone or selection.has_group:
        own_domain = selection.domain is not None and is_own_host(selection.domain)
        parts, domain = selection.count, selection.domain
        facts = _read(owner, parts=parts, domain=domain, own_domain=own_domain, named=named, **members)
    else:
        facts = _read_ids(owner.user_id, ids=selection.ids)
    if facts is None:
        raise not_found("user")
    if selection.ids is not None and facts["ids"] < len(selection.ids):
        raise not_found("link or QR code")
    for part in ("campaign", "channel"):
        if members[part] is not None and not facts[part]:
            raise not_found(part)
    if selection.domain is not None and not facts["domain"]:
        raise AppError("domain_unknown")
    since, first = (
        _parsed(text) if (text := facts.get(name)) else None for name in ("detailed_since", "first")
    )
    tracked_ids, days_before = facts["tracked_ids"] if selection.count else None, facts["days_before"]
    names = {part: link_name(*name) for part, name in (facts["names"] or {}).items()} if named else None
    return Scope(tracked_ids, since, date.fromisoformat(days_before), names, first)


def first_day(owner: Owner, scope: Scope, zone: ZoneInfo) -> date:
    first, today = _first_visit(owner, scope.tracked_ids), datetime.now(zone).date()
    if not first:
        return today
    return min(today, first.date() if first.date() < scope.days_before else first.astimezone(zone).date())
