"""The figures of the weekly report, which are those of the page of statistics for the same week."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.urls import link_name
from linkmgr.core.fields.zones import start_of_day
from linkmgr.features.statistics import results
from linkmgr.features.statistics.periods import compared, parse_range
from linkmgr.features.statistics.query import Query, Selection
from linkmgr.features.statistics.selection import Owner
from linkmgr.visits.dimensions import CAMPAIGN, TARGET

TOP = 5


def figures(user_id: int, zone: ZoneInfo, monday: str) -> Row:
    """Return the clicks of the week before a Monday, those of the week before it, or None if there
    was no visit yet, and the best links and campaigns with their clicks."""
    now = start_of_day(date.fromisoformat(monday), zone) + timedelta(hours=1)
    span = parse_range(zone, now, since=None, until=None, period="last_week")
    assert span.since
    shared: Any = {"metrics": ["clicks"], "selection": Selection(None, None, None, None), "range": span}
    shared |= {"filters": {}, "bots": "exclude", "order": "-clicks"}
    before = tuple(at.astimezone(UTC) for at in compared(span, None, now)[1])
    total, links, campaigns = results.reports(
        Owner(user_id),
        [
            Query(by=[], limit=1, before=before, **shared),
            Query(by=[TARGET], limit=TOP, **shared),
            Query(by=[CAMPAIGN], limit=TOP + 1, **shared),  # one is that of links without a campaign
        ],
    )[1]
    return {
        "clicks": total.totals["clicks"],
        "before": total.rows[0].get("before"),
        "first": _day(span.since, zone),
        "last": _day(span.until - timedelta(hours=1), zone),
        "links": [(row["clicks"], _link(links.names.get((TARGET, str(row[TARGET]))))) for row in links.rows],
        "campaigns": [
            (
                row["clicks"],
                campaigns.names.get((CAMPAIGN, str(row[CAMPAIGN])), {}).get("name", "A deleted campaign"),
            )
            for row in campaigns.rows
            if row[CAMPAIGN] is not None
        ][:TOP],
    }


def _day(at: datetime, zone: ZoneInfo) -> str:
    local = at.astimezone(zone)
    return f"{local:%b} {local.day}, {local.year}"


def _link(named: Row | None) -> str:
    if not named:
        return "A deleted link or QR code"
    if named["noun"] != "link":
        return str(named["name"])
    return f"{link_name(named['title'], named['url'])} ({named['name']})"
