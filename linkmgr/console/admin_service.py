"""The state of the service, its settings without secrets, and the visits of the last minutes."""

import platform
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from flask import g, render_template

from linkmgr.console import charts, signed_in
from linkmgr.console.admin_access import bp
from linkmgr.console.domains import missed_paths
from linkmgr.core.database import service as repository
from linkmgr.core.database.paging import Page
from linkmgr.core.feature import has_feature
from linkmgr.core.settings import PREFIX, RELEASE, settings
from linkmgr.features.missing_paths.repository import OWN
from linkmgr.features.statistics import latest_visits
from linkmgr.features.statistics.selection import Owner
from linkmgr.visits import spool

_README = Path(__file__).parents[2] / "README.md"
_SECRET = ("url", "secret", "token", "storage")  # parts of the names of settings whose values are not shown


@cache
def _meanings() -> dict[str, str]:
    with suppress(OSError):
        return dict(
            re.findall(r"^\| `(LINKMGR_[A-Z_]+)` \| .*? \| (.+) \|$", _README.read_text(), re.MULTILINE)
        )
    return {}


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(int(value) if isinstance(value, bool) else value)


def _settings() -> Iterator[tuple[str, str, str, str]]:
    for field in fields(settings()):
        name, value = PREFIX + field.name.upper(), _text(getattr(settings(), field.name))
        is_secret = field.name != "base_url" and any(part in field.name for part in _SECRET)
        yield name, "set" if value and is_secret else value, _meanings().get(name, ""), _text(field.default)


def _missed() -> Page:
    return missed_paths(OWN, OWN, can_be_wide="widealiases" in settings().aliases)


@bp.get("")
def service() -> str:
    state = repository.state()
    minutes = latest_visits.report(Owner(g.user_id, everyone=True), "exclude").rows
    starts = [signed_in.parse_utc(row["time"][:19]).astimezone(g.zone) for row in minutes]
    buckets = [charts.Bucket(start, row["clicks"], 0) for start, row in zip(starts, minutes, strict=True)]
    return render_template(
        "administration/service.html",
        missing=_missed() if has_feature("missing_paths") else None,
        state=state,
        waiting=spool.backlog(settings().folder / "visits", state["spools"])[0],
        version=RELEASE,
        python=platform.python_version(),
        settings=_settings(),
        has_clicks=any(bucket.clicks for bucket in buckets),
        chart=charts.chart(
            buckets, unit="minute", period=f"the last {latest_visits.MINUTES} minutes", noun="visit"
        ),
    )
