"""Conversions on their way in: from a key, a page or a file to the rows that are stored."""

import csv
import io
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields.bodies import load, members_of
from linkmgr.core.fields.unknown import warn_unknown
from linkmgr.core.settings import settings
from linkmgr.core.web.request import warn
from linkmgr.core.web.uploads import Upload
from linkmgr.features.conversions import amounts, clicks
from linkmgr.features.conversions import repository as conversions
from linkmgr.features.conversions.schema import MAX_REPORTS, Report
from linkmgr.visits import counting

MAX_ROWS, MAX_BYTES = 10_000, 2 << 20  # of a file
COUNTED, NO_LINK, INVALID = "counted", "no_link", "invalid"
RESULTS = (COUNTED, "duplicate", "no_visit", "too_late", "too_many", NO_LINK)
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)  # before any visit
_HALF = timedelta(days=conversions.DAYS / 2)


def of_visitor(link_id: int, address: str, agent: str, at: datetime) -> Row:
    """Return the digests that a visitor may have had in the DAYS before, and for `too_late` half of
    them longer: with the keys of these months, unless the service forgets visitors each day."""
    times = [at] if settings().visitor_salt == "daily" else [at - part * _HALF for part in range(4)]
    agent = agent[: counting.MAX_AGENT]
    digests = (counting.visitor_of(link_id, address, agent, time.timestamp()) for time in times)
    return {"link": link_id, "visitors": [*dict.fromkeys(digests)]}


def of_page(texts: Row, visit: Row) -> Row:
    """Return what a page reports of a visit. Its texts are those of anybody."""
    event, order, currency = (_clean(texts.get(name)) for name in ("event", "order", "currency"))
    value, currency, problem = amounts.read(texts.get("value"), currency)
    return {
        **visit,
        "event": event[: conversions.MAX_EVENT] or conversions.DEFAULT_EVENT,
        "order_id": order[: conversions.MAX_ORDER],
        "value": value,
        "currency": currency,
        "source": conversions.PAGE,
        "problem": problem,
    }


def _clean(value: Any) -> str:
    """Return a text or an integer, as ids of orders may be, without what is not printable."""
    text = str(value) if type(value) in (str, int) else ""
    return "".join(filter(str.isprintable, text)).strip()


def of_key(report: Row, now: datetime) -> Row:
    at = min(max(datetime.fromisoformat(report["at"]), _FIRST), now) if report["at"] else now
    if report["click"]:
        visit = clicks.read(report["click"])
    else:
        visit = of_visitor(report["link"], report["ip"], report["agent"], at)
    own = {name: report[name] for name in ("event", "value", "currency")} | {"order_id": report["order"]}
    return visit | own | {"at": at.isoformat(), "source": conversions.KEY, "problem": ""}


def store(user_id: int, reports: list[Row]) -> list[Row]:
    """Store what a key reports, and return the `result` of each, whether it was `counted`, and the
    `id` of what is stored."""
    now = datetime.now(UTC)
    outcomes = conversions.add(user_id, [of_key(report, now) for report in reports])
    return [{"counted": outcome["result"] == COUNTED} | outcome for outcome in outcomes]


def of_file(user_id: int, upload: Upload) -> tuple[int, list[Row]]:
    """Store the rows of a CSV whose first line has the names of members. Return how many were
    counted, and of each other one its last `line`, its `result`, and the `message` if it cannot be
    read."""
    if upload.size > MAX_BYTES:
        raise AppError("bulk_too_large")
    try:
        text = upload.file.read().decode("utf-8-sig")
        separator = max(",;\t", key=text.partition("\n")[0].count)
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
        rows = [(reader.line_num, row) for row in islice(reader, MAX_ROWS + 1)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise AppError("import_unreadable", problem=f"The file is no CSV in UTF-8: {error}.") from None
    if len(rows) > MAX_ROWS:
        raise AppError("import_unreadable", problem=f"The file has more than {MAX_ROWS:,} rows. Divide it.")
    named = [
        (line, {(name or "").strip().lower(): cell for name, cell in row.items() if cell})
        for line, row in rows
    ]
    members = members_of(Report)
    _warn_ignored({name for _, row in named for name in row if name not in members})
    loaded = [
        (line, _load({name: cell for name, cell in row.items() if name in members})) for line, row in named
    ]
    good = [report for _, report in loaded if not isinstance(report, AppError)]
    parts = (good[start : start + MAX_REPORTS] for start in range(0, len(good), MAX_REPORTS))
    outcomes = (outcome for part in parts for outcome in store(user_id, part))
    results = [
        {"line": line, "result": INVALID, "message": report.message} if isinstance(report, AppError)
        else {"line": line, "result": next(outcomes)["result"]}
        for line, report in loaded
    ]  # fmt: skip
    failed = [row for row in results if row["result"] != COUNTED]
    return len(results) - len(failed), failed


def _warn_ignored(columns: set[str]) -> None:
    """Warn of columns that are no members, once for all rows."""
    if "" in columns:
        warn("Columns that have no name in the first line were ignored.")
    warn_unknown(Report, members_of(Report), {name: True for name in sorted(columns) if name})


def _load(sent: Row) -> Row | AppError:
    value, currency, problem = amounts.read(sent.pop("value", ""), sent.get("currency", ""))
    if problem:
        return AppError("invalid", problems="value cannot be read as an amount")
    if str(sent.get("link", "")).isdecimal():
        sent["link"] = int(sent["link"][:20])  # enough digits to exceed any id
    try:
        return load(Report, sent | {"value": value, "currency": currency or sent.get("currency")})
    except AppError as error:
        return error
