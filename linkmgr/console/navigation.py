"""The menu of all pages for users who have signed in."""

from typing import NamedTuple

from flask import g, request

from linkmgr.console import roles
from linkmgr.console.plan_use import included
from linkmgr.core.feature import has_console, has_feature


class Entry(NamedTuple):
    """It is current on all pages below its path. `icon` is the path of an SVG of 24 by 24."""

    label: str
    path: str
    icon: str
    feature: str = ""  # that has the pages, or "" for those of the service


# By heading. A page that has its own entry adds it here.
NAVIGATION = {
    "": (
        Entry("Home", "/console", "M4 11l8-7 8 7v9h-5v-6H9v6H4z"),
        Entry("Links", "/console/links", "M9 12h6M10 8H7a4 4 0 0 0 0 8h3M14 8h3a4 4 0 0 1 0 8h-3"),
        Entry("Statistics", "/console/statistics", "M4 20h16M7 16v-4M12 16V6M17 16V9"),
        Entry("QR codes", "/console/qrs", "M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h3v3M20 14v6h-6"),
        Entry("Bio pages", "/console/bios", "M7 3h10v18H7zM10 8h4M10 12h4M10 16h4"),
        Entry("Campaigns", "/console/campaigns", "M5 21V4h14l-3 4 3 4H5"),
        Entry("Channels", "/console/channels", "M9 4L7 20M17 4l-2 16M4 9h16M4 15h16"),
    ),
    "Show and track": (
        Entry("Splash pages", "/console/splash", "M4 5h16v14H4zM4 9h16"),
        Entry("Overlays", "/console/overlays", "M12 4l8 4-8 4-8-4zM4 12l8 4 8-4M4 16l8 4 8-4"),
        Entry("Pixels", "/console/pixels", "M5 5h14v14H5zM12 2v6M12 16v6M2 12h6M16 12h6"),
        Entry("Conversions", "/console/conversions", "M4 12l5 5L20 6M4 20h16", "conversions"),
    ),
    "Set up": (
        Entry("UTM templates", "/console/utm", "M4 7h9l7 5-7 5H4zM8 12h1", "utm"),
        Entry("Domains", "/console/domains", "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M4 12h16M12 4v16"),
        Entry(
            "API keys", "/console/keys", "M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8M11 12l8-8M16 7l3 3", "scoped_keys"
        ),
        Entry("Webhooks", "/console/webhooks", "M13 3L5 14h6l-1 7 8-11h-6z", "webhooks"),
        Entry(
            "Import and export", "/console/imports", "M8 4v14M4 14l4 4 4-4M16 20V6M12 10l4-4 4 4", "imports"
        ),
        Entry(
            "Members",
            "/console/members",
            "M8 5a3 3 0 1 0 1 0M2 19c0-7 12-7 13 0M17 7a2 2 0 1 0 1 0M18 13c3 0 4 2 4 5",
            "members",
        ),
        Entry("Account", "/account", "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M4 21c1-8 15-8 16 0"),
        Entry("API documentation", "/api/docs", "M9 7l-5 5 5 5M15 7l5 5-5 5"),
    ),
    "Administration": (
        Entry("Service", "/console/administration", "M3 12h4l3-7 4 14 3-7h4"),
        Entry("Users", "/console/administration/users", "M9 5a4 4 0 1 0 1 0M3 20c1-8 12-8 13 0M20 7v9"),
        Entry("Plans", "/console/administration/plans", "M3 6h18v12H3zM3 10h18M7 15h4"),
        Entry(
            "Reports", "/console/administration/reports", "M5 21V4h13l-3 4 3 4H5M10 6v3M10 11v0", "reports"
        ),
        Entry(
            "Activity",
            "/console/administration/activity",
            "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4l3 2",
            "webhooks",
        ),
    ),
}


def _exists(entry: Entry) -> bool:
    is_left_out = entry.feature and not has_feature(entry.feature)
    if is_left_out or (entry.path.startswith("/console") and not has_console()):
        return False
    is_unused = entry.feature == "members" and not (included("team") or g.account["used"].get("members"))
    return not is_unused and roles.can(g.role, entry.path)


def navigation() -> dict[str, list[tuple[Entry, bool]]]:
    paths = [entry.path for entries in NAVIGATION.values() for entry in entries] if request.url_rule else []
    above = [path for path in paths if f"{request.path}/".startswith(f"{path}/")]
    return {
        heading: [
            (entry, entry.path == max(above, key=len, default="")) for entry in entries if _exists(entry)
        ]
        for heading, entries in NAVIGATION.items()
        if heading != "Administration" or g.admin
    }
