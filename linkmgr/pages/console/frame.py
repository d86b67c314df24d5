"""The frame of all pages of the console: the session, the navigation, and how pages show times and lists."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from flask import Blueprint, g, redirect, request, url_for
from werkzeug.wrappers import Response

from linkmgr.db.statements import Row
from linkmgr.pages.console.charts import FEW
from linkmgr.web import security_headers, sessions

bp = Blueprint("console", __name__, url_prefix="/console")
bp.after_request(security_headers.keep_private)

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


class Entry(NamedTuple):
    """An entry of the navigation. It is current on all pages whose endpoints begin with its prefix."""

    label: str
    endpoint: str
    prefix: str


# By heading. A page that has its own entry adds it here.
NAVIGATION = {
    "": (
        Entry("Home", "console.home", "console.home"),
        Entry("Links", "console.links", "console.link"),
    ),
    "Set up": (
        Entry("Import and export", "console.imports", "console.import"),
        Entry("Account", "account_page.show", "account_page."),
        Entry("API documentation", "docs.page", "docs."),
    ),
}


@bp.before_request
def _require_session() -> Response | None:
    current = sessions.current()
    if current is None:
        return redirect(url_for("login.form"), code=303)
    g.user_id = current["user_id"]
    return None


def _navigation() -> dict[str, list[tuple[Entry, bool]]]:
    endpoint = request.endpoint or ""
    return {
        heading: [(entry, endpoint.startswith(entry.prefix)) for entry in entries]
        for heading, entries in NAVIGATION.items()
    }


def parse_utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _when(text: str) -> str:
    """Return a time within the last day relative to now, and any other one as a date."""
    at = parse_utc(text)
    seconds = int((datetime.now(UTC) - at).total_seconds())
    if not 0 <= seconds < _DAY:
        return f"{at:%b} {at.day}, {at.year}"
    if seconds < _MINUTE:
        return "just now"
    number, unit = (seconds // _MINUTE, "minute") if seconds < _HOUR else (seconds // _HOUR, "hour")
    return f"{number} {unit}{'' if number == 1 else 's'} ago"


@bp.record_once
def _add_helpers(state: object) -> None:
    app = state.app  # type: ignore[attr-defined]
    app.add_template_global(_navigation, "navigation")
    app.add_template_filter(_when, "when")


class Bar(NamedTuple):
    """A row of a table with bars."""

    label: str
    clicks: int
    width: float  # in percent of the largest
    share: str
    url: str


def tables(
    rows: list[Row], total: int, headings: dict[str, str], name: Callable[[Row], tuple[str, str]]
) -> dict[str, list[Bar]]:
    """Return a table of the rows of each dimension, by heading. `name` returns the label and the URL of a row. Few
    clicks have no shares."""
    made: dict[str, list[Bar]] = {heading: [] for heading in headings.values()}
    for row in rows:  # those of a dimension begin with the largest
        if row["dimension"] in headings:
            table, clicks = made[headings[row["dimension"]]], row["clicks"]
            label, url = name(row)
            width = clicks / (table[0].clicks if table else clicks) * 100
            table.append(Bar(label, clicks, width, f"{clicks / total * 100:.0f} %" if total >= FEW else "", url))
    return made
