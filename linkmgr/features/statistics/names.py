"""The names of links, QR codes, campaigns and channels in rows of statistics."""

from collections.abc import Collection, Iterator

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.short_urls import short_url
from linkmgr.core.fields.urls import link_name
from linkmgr.features.statistics.results import Report
from linkmgr.visits.dimensions import TARGET


def with_names(report: Report, dimensions: Collection[str]) -> Iterator[Row]:
    """Yield the rows with the names of their labels in some dimensions, which are null if these
    are deleted."""
    for row in report.rows:
        names = {name: report.names.get((name, str(row[name]))) for name in dimensions if name in row}
        target = names.pop(TARGET, None)
        members: Row = {f"{name}_name": label and label["name"] for name, label in names.items()}
        if TARGET in row:
            is_link = target and target["noun"] == "link"
            members["target_name"] = target and (
                link_name(target["title"], target["url"]) if is_link else target["name"]
            )
            members["shorturl"] = short_url(target["domain"], target["alias"]) if target and is_link else None
        yield row | members
