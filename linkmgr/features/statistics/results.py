"""Reports of statistics: select the source, count, fill empty buckets, and sort."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import orjson
from psycopg2.errors import QueryCanceled

from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.zones import start_of_day
from linkmgr.core.settings import settings
from linkmgr.core.web import pool
from linkmgr.features.statistics import counts
from linkmgr.features.statistics import selection as stats_scope
from linkmgr.features.statistics.conversions import MIXED, NONE, with_conversions
from linkmgr.features.statistics.periods import Bucket, Range, as_array, as_rollups, buckets, checked
from linkmgr.features.statistics.query import (
    BOTS,
    CONVERSIONS,
    CURRENCY,
    DEFAULT_LIMIT,
    MAX_ROWS,
    OF_CLICKS,
    RATE,
    Query,
)
from linkmgr.features.statistics.selection import Owner, Scope
from linkmgr.repository import link_lists
from linkmgr.visits.dimensions import BY_NAME, CAMPAIGN, CHANNEL, DOMAIN, NO_LABEL, OF_ROWS, TARGET

RETRY_SECONDS = 60
_MAX_CACHED = timedelta(days=100)
# Link-days above which a query needs a slot. Visits take longer to count than their sums.
MAX_VISIT_DAYS, MAX_SUM_DAYS = 400, 4000
ACCOUNT = 10  # the account counts as this many links
_JOINED = (CAMPAIGN, CHANNEL, DOMAIN)  # dimensions whose labels are found when visits are counted


class Report(NamedTuple):
    columns: list[str]
    rows: list[Row]
    totals: Row
    meta: Row
    names: dict[tuple[str, str], Row]  # `label_name` of schema.sql by dimension and label, if requested
    currencies: tuple[str, ...] = ()  # of the conversions


class _Times(NamedTuple):
    periods: list[Bucket]
    visits: Row
    rollups: Row


class _Count(NamedTuple):
    owner: Owner
    query: Query
    scope: Scope
    source: str
    times: _Times
    limit: int  # of labels


def _timestamp(at: datetime | None) -> str | None:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if at else None


@contextmanager
def bounded() -> Iterator[None]:
    try:
        yield
    except QueryCanceled:
        raise AppError("too_slow", seconds=RETRY_SECONDS) from None


# --- the range and the source


def _needs_visits(query: Query) -> bool:
    """Return True if the rollups, which are by one dimension, do not have the numbers."""
    return len({*query.dimensions, *query.of_visits}) > 1 and not {*OF_CLICKS}.isdisjoint(query.metrics)


def _first_moment(owner: Owner, query: Query, scope: Scope) -> datetime:
    """Return the start of the period `all`: the day of the first visit, or the first day with all
    visits if they are needed."""
    zone = query.range.zone
    since = start_of_day(stats_scope.first_day(owner, scope, zone), zone)
    if not _needs_visits(query) or scope.detailed_since is None or since >= scope.detailed_since:
        return since
    return start_of_day(scope.detailed_since.astimezone(zone).date() + timedelta(days=1), zone)


def _with_start(owner: Owner, query: Query, scope: Scope) -> Query:
    if query.range.since is not None:
        return query
    return replace(query, range=checked(replace(query.range, since=_first_moment(owner, query, scope))))


def _source(query: Query, scope: Scope) -> str:
    """Return `visits`, `rollups` or, without figures of clicks, `conversions`. Visits are kept for
    the retention period, the others forever."""
    if {*OF_CLICKS}.isdisjoint(query.metrics):
        return "conversions"
    is_detailed = scope.detailed_since is None or query.first >= scope.detailed_since
    if _needs_visits(query) and not is_detailed:
        raise invalid(
            "by and the filters name more than one dimension, which only the visits have. The "
            f"visits are kept since {_timestamp(scope.detailed_since)} UTC: send a later from, or "
            "name only one dimension"
        )
    return "visits" if is_detailed and (_needs_visits(query) or "visitors" in query.metrics) else "rollups"


def _plan(owner: Owner, query: Query, scope: Scope) -> _Count:
    query = _with_start(owner, query, scope)
    # `period=30d` is the same range all day, so its times are kept for all reports. Those of long
    # ranges are many.
    times_of = _times if query.range.until - query.first <= _MAX_CACHED else _times.__wrapped__
    times = times_of(query.range, query.unit, scope.days_before, query.before)
    limit = max(1, min(query.limit, MAX_ROWS // len(times.periods)))
    return _Count(owner, query, scope, _source(query, scope), times, limit)


# --- the statements and their parameters


@lru_cache(maxsize=16)
def _times(span: Range, unit: str | None, days_before: date, before: tuple[datetime, ...]) -> _Times:
    periods = buckets(span, unit)
    counted = replace(span, since=before[0]) if before else span
    assert counted.since
    starts = [*before, *(period.start for period in periods)]
    times = {"edges": as_array(starts), "since": counted.since.isoformat(), "until": span.until.isoformat()}
    return _Times(periods, times, as_rollups(counted, starts, days_before))


def _params(count: _Count) -> Row:
    return {
        "bots": BOTS[count.query.bots],
        "limit": count.limit,
        "named": count.query.is_named or count.scope.names is not None,
        "tracked_ids": count.scope.tracked_ids,
        "first": len(count.query.before) + 1,
    }


def _count_rollups(count: _Count) -> list[Row]:
    query, params = count.query, _params(count) | count.times.rollups
    dimension = next(iter({*query.dimensions, *query.of_visits}), None)
    if not dimension:
        return counts.unlabeled(count.owner, **params)
    label_filter = query.filters.get(dimension)
    return counts.of_rollups(
        count.owner,
        dimensions=["", dimension] if dimension in BY_NAME else [TARGET],
        by_tracked=dimension in OF_ROWS,
        named_by=dimension,
        joined=dimension if dimension in _JOINED else None,
        by_label=dimension in {*query.dimensions}.difference(_JOINED),
        included=label_filter and label_filter.included,
        excluded=label_filter and label_filter.excluded,
        **params,
    )


def _count_visits(count: _Count) -> list[Row]:
    query = count.query
    first, second = [*query.dimensions, "", ""][:2]
    params = _params(count) | count.times.visits
    filters = {name: label_filter.labels for name, label_filter in query.of_visits.items()}
    params |= {"a": first, "b": second, "joins_a": first in _JOINED, "joins_b": second in _JOINED}
    params["count_visitors"] = "visitors" in query.metrics
    params["filters"] = orjson.dumps(filters).decode() if filters else None
    return counts.of_visits(count.owner, **params)


# --- the report


def _ranked(count: _Count, counted: list[Row]) -> list[tuple[str, str]]:
    if not count.query.dimensions:
        return [("", "")]
    clicks: dict[tuple[str, str], int] = {}
    metric = "conversions" if count.source == "conversions" else "clicks"
    for row in counted:
        labels = row["a"], row["b"]
        clicks[labels] = clicks.get(labels, 0) + row.get(metric, 0)
    return sorted(clicks, key=lambda labels: (-clicks[labels], labels))


def _filled(count: _Count, counted: list[Row], *, is_mixed: bool) -> Iterator[Row]:
    numbers = {(row["bucket"], row["a"], row["b"]): row for row in counted}
    nothing = {
        "clicks": 0,
        "visitors": 0 if count.source == "visits" else None,
        "conversions": 0,
        "value": None if is_mixed and CURRENCY not in count.query.by else 0.0,
    }
    ranked, names, earlier = _ranked(count, counted), count.query.dimensions, len(count.query.before)
    labeled = [
        (labels, {name: _value(name, label) for name, label in zip(names, labels, strict=False)})
        for labels in ranked
    ]
    for number, period in enumerate(count.times.periods, 1):
        for labels, members in labeled:
            row = numbers.get((earlier + number, *labels), {})
            before = numbers.get((number, *labels), nothing)["clicks"] if number < earlier else 0
            figures = {**nothing, **row}
            figures[RATE] = _rate(figures)
            yield {**figures, "number": number, "time": period.label, **members, "before": before}


def _rate(figures: Row) -> float | None:
    return round(figures["conversions"] / figures["clicks"], 6) if figures["clicks"] else None


def _value(name: str, label: str) -> str | int | None:
    if name not in OF_ROWS:
        return label or None if name == CURRENCY else label
    if name == DOMAIN and label != NO_LABEL:
        return label or settings().host
    return None if label == NO_LABEL else int(label)


def _sorted(query: Query, rows: Iterator[Row]) -> Iterable[Row]:
    if query.order == "time":
        return rows
    name = query.order.removeprefix("-")
    column = "number" if name == "time" else name
    return sorted(
        rows, key=lambda row: (row[column] is not None, row[column]), reverse=query.order.startswith("-")
    )


def _meta(count: _Count, labels: int, *, is_mixed: bool) -> Row:
    query, scope, span, selection = count.query, count.scope, count.query.range, count.query.selection
    has_visitors = "visitors" not in query.metrics or count.source == "visits"
    reason = "Visitors are counted from the visits, and the range begins before detailed_since."
    return {
        "metrics": query.metrics,
        "by": query.by,
        "ids": selection.ids,
        "campaign": selection.campaign,
        "channel": selection.channel,
        "domain": selection.domain,
        "from": query.since.astimezone(span.zone).isoformat(),
        "to": span.until.astimezone(span.zone).isoformat(),
        "period": span.period,
        "timezone": span.zone.key,
        "filters": {name: label_filter.text for name, label_filter in query.filters.items()},
        "bots": query.bots,
        "order": query.order,
        "limit": count.limit,
        "truncated": labels > count.limit,
        "source": count.source,
        "detailed_since": _timestamp(scope.detailed_since),
        "utc_days_before": scope.days_before.isoformat(),
        "visitors_null_because": None if has_visitors else reason,
        "value_null_because": MIXED if is_mixed else None,
    }


def _is_heavy(count: _Count) -> bool:
    tracked_ids, span = count.scope.tracked_ids, count.query.range
    number = ACCOUNT if tracked_ids is None else tracked_ids.count(",") + 1
    days = (span.until - count.query.first) / timedelta(days=1) * number
    if count.source == "visits":
        return days > MAX_VISIT_DAYS
    return days > MAX_SUM_DAYS and bool({*count.query.dimensions, *count.query.filters})


def _scope(owner: Owner, query: Query, *, named: bool = False) -> Scope:
    selection = query.selection
    if selection.has_group or not {*_JOINED}.isdisjoint(query.dimensions):
        number = link_lists.number_of(owner.user_id) if owner.links is None else owner.links
        pool.take_for(number, "stats_busy")
    with bounded():
        return stats_scope.read(owner, selection, named=named)


def report(owner: Owner, query: Query) -> Report:
    return _report(owner, query, _scope(owner, query))


def _compare(query: Query, scope: Scope) -> Query:
    """Leave out the time before if it begins before the first visit, or before the visits that are
    needed."""
    since = [scope.first, scope.detailed_since if _needs_visits(query) else None]
    is_counted = scope.first and query.first >= max(filter(None, since))
    return query if is_counted else replace(query, before=())


def reports(owner: Owner, queries: list[Query]) -> tuple[dict[str, str], list[Report]]:
    """Return the names of what all queries select, by the parameter, and the report of each.
    Visitors of the account and of many links, which take long to count, are left out unless the
    filters need the visits anyway."""
    scope = _scope(owner, queries[0], named=True)
    with bounded():
        queries = [_compare(query, scope) for query in queries]
        isbounded = queries[0].selection.ids or any(map(_needs_visits, queries))
        plans = (_plan(owner, query, scope) for query in queries)
        if not isbounded and (scope.tracked_ids is None or any(map(_is_heavy, plans))):
            queries = [
                replace(query, metrics=[name for name in query.metrics if name != "visitors"])
                for query in queries
            ]
    return scope.names or {}, [_report(owner, query, scope) for query in queries]


def _report(owner: Owner, query: Query, scope: Scope) -> Report:
    with bounded():
        count = _plan(owner, query, scope)
        has_many_labels = count.limit > DEFAULT_LIMIT and count.query.dimensions
        if has_many_labels or _is_heavy(count):
            pool.take("stats_busy")
        if count.source == "conversions":
            counted = [{**NONE}]
        else:
            counted = _count_visits(count) if count.source == "visits" else _count_rollups(count)
        if {*CONVERSIONS} & {*query.metrics}:
            params = count.times.visits | {"tracked_ids": count.scope.tracked_ids}
            counted = with_conversions(counted, owner, query, limit=count.limit, **params)
    [totals] = [row for row in counted if row["bucket"] is None]
    is_mixed = totals.get("value", 0) is None
    totals[RATE] = _rate(totals) if RATE in query.metrics else None
    filled = _filled(count, [row for row in counted if row["bucket"] is not None], is_mixed=is_mixed)
    rows = _sorted(count.query, filled)
    columns = query.columns
    return Report(
        columns,
        [{name: row[name] for name in columns} for row in rows],
        {name: totals[name] for name in query.metrics},
        _meta(count, totals["labels"], is_mixed=is_mixed),
        {
            (dimension, row[part]): row[f"name_{part}"]
            for dimension, part in zip(count.query.dimensions, "ab", strict=False)
            for row in counted
            if row.get(f"name_{part}")
        },
        tuple(totals.get("currencies") or ()),
    )
