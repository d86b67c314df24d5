"""Use of the limits of a plan. An account is a row with `admin`, `limits` and `used`."""

import re
from typing import NamedTuple

from flask import g

from linkmgr.core.database.statements import Row
from linkmgr.core.feature import has_feature
from linkmgr.core.settings import settings
from linkmgr.schemas.plans import LIMITS

# By `counted` of the view `usage`: its label, and the member of the plan's limits that limits it.
COUNTED = {
    "links": ("Links", "links"),
    "clicks": ("Visits this month", "clicks"),
    "qrs": ("QR codes", None),
    "bios": ("Bio pages", None),
    "domains": ("Branded domains", "domain"),
    "pixels": ("Pixels", "pixels"),
    "splash_pages": ("Splash pages", "splash"),
    "overlays": ("Overlays", "overlay"),
    "campaigns": ("Campaigns", "bundle"),
    "channels": ("Channels", None),
    "members": ("Members", "team"),
}
_FEATURES = ("api", "alias", "geo", "device", "parameters", "export")


class Usage(NamedTuple):
    """Use of one limit. `limit` is None if there is none, and 0 if the plan excludes the
    feature."""

    label: str
    used: int
    limit: int | None


def _limit(limits: Row, member: str | None) -> int | None:
    limit = 0 if member is None else limits.get(member, 0)
    if isinstance(limit, dict):
        if limit["enabled"] != "1":
            return 0
        limit = int(limit.get("count", 0))
    return limit or None


def usage(account: Row) -> list[Usage]:
    uses = {counted: use_of(account, counted) for counted in COUNTED}
    if not (uses["members"].used or (has_feature("members") and uses["members"].limit != 0)):
        del uses["members"]
    return [*uses.values()]


def use_of(account: Row, counted: str) -> Usage:
    label, member = COUNTED.get(counted, ("", None))
    limit = None if account["admin"] else _limit(account["limits"], member)
    return Usage(label, account["used"].get(counted, 0), limit)


def is_included(account: Row, feature: str) -> bool:
    return bool(account["admin"] or account["limits"].get(feature, {}).get("enabled") == "1")


def features(account: Row) -> dict[str, bool]:
    return {LIMITS[name].metadata["label"]: is_included(account, name) for name in _FEATURES}


def rate(account: Row) -> str:
    rate = f"{account['rate']} per minute" if account["rate"] else settings().rate_limit
    return re.sub("[0-9]+", lambda number: f"{int(number[0]):,}", rate)


def included(feature: str) -> bool:
    """Return True if the plan of the user has a feature, and the service too."""
    return is_included(g.account, feature) and (feature != "export" or has_feature("exports"))
