"""The frame of all pages of the console: the session, the navigation, and how pages show times and lists."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from flask import Blueprint, flash, g, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.wrappers import Response

from linkmgr.console import plan_use, signed_in
from linkmgr.console import queries as console_queries
from linkmgr.core.fields.urls import readable
from linkmgr.core.web import error_handlers, security_headers
from linkmgr.core.web import request as web_request


def _allow_previews(response: Response) -> Response:
    """Let scripts fetch pages of the console, and forms frame them, which the policy of other pages forbids."""
    name, policy = security_headers.policy(request.environ)
    frames = "; frame-src 'self'" if g.get("has_frame") else ""
    response.headers.setdefault(name, f"{policy}; connect-src 'self'{frames}")
    return response


def blueprint(name: str, url_prefix: str) -> Blueprint:
    bp = Blueprint(name, __name__, url_prefix=url_prefix)
    bp.before_request(signed_in.require_session)
    bp.before_request(signed_in.require_password)
    bp.after_request(security_headers.keep_private)
    bp.after_request(_allow_previews)
    return bp


bp = blueprint("console", "/console")
for function in (signed_in.when, signed_in.day, signed_in.minute, signed_in.exact, signed_in.to_control, readable):
    bp.add_app_template_filter(function)


@bp.app_errorhandler(NotFound)
@bp.app_errorhandler(MethodNotAllowed)
def _identify_lost_user(error: HTTPException) -> ResponseReturnValue:
    """Read the session below /console also where no route is, because the 404 page then keeps the navigation."""
    is_below = request.path.startswith(f"{bp.url_prefix}/") and web_request.current().foreign_host is None
    if request.routing_exception and is_below:
        try:
            signed_in.require_session()
        except Exception as refusal:
            return error_handlers.handle(refusal)
    return error_handlers.handle(error)


class Entry(NamedTuple):
    """It is current on all pages below its path. `icon` is the path of an SVG of 24 by 24."""

    label: str
    path: str
    icon: str


class Chip(NamedTuple):
    label: str
    url: str


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
    ),
    "Set up": (
        Entry("UTM templates", "/console/utm", "M4 7h9l7 5-7 5H4zM8 12h1"),
        Entry("Domains", "/console/domains", "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M4 12h16M12 4v16"),
        Entry("API keys", "/console/keys", "M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8M11 12l8-8M16 7l3 3"),
        Entry("Webhooks", "/console/webhooks", "M13 3L5 14h6l-1 7 8-11h-6z"),
        Entry("Import and export", "/console/imports", "M8 4v14M4 14l4 4 4-4M16 20V6M12 10l4-4 4 4"),
        Entry("Account", "/account", "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M4 21c1-8 15-8 16 0"),
        Entry("API documentation", "/api/docs", "M9 7l-5 5 5 5M15 7l5 5-5 5"),
    ),
    "Administration": (
        Entry("Service", "/console/administration", "M3 12h4l3-7 4 14 3-7h4"),
        Entry("Users", "/console/administration/users", "M9 5a4 4 0 1 0 1 0M3 20c1-8 12-8 13 0M20 7v9"),
        Entry("Plans", "/console/administration/plans", "M3 6h18v12H3zM3 10h18M7 15h4"),
        Entry("Reports", "/console/administration/reports", "M5 21V4h13l-3 4 3 4H5M10 6v3M10 11v0"),
        Entry("Activity", "/console/administration/activity", "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4l3 2"),
    ),
}


@bp.app_template_global("navigation")
def _navigation() -> dict[str, list[tuple[Entry, bool]]]:
    paths = [entry.path for entries in NAVIGATION.values() for entry in entries] if request.url_rule else []
    above = [path for path in paths if f"{request.path}/".startswith(f"{path}/")]
    return {
        heading: [(entry, entry.path == max(above, key=len, default="")) for entry in entries]
        for heading, entries in NAVIGATION.items()
        if heading != "Administration" or g.admin
    }


def flash_with_warnings(sentence: str, labels: Mapping[str, str]) -> None:
    flash(sentence, "success")
    for warning in web_request.current().warnings:
        worded = re.sub("^The member '([a-z]+)'", lambda member: labels.get(member[1], member[0]), warning)
        name, mark, rest = worded.partition(": ")
        flash(f"{labels.get(name, name) if mark else name}{mark}{rest}", "warning")


@bp.app_template_filter("counted")
def _counted(number: int) -> str:
    many = console_queries.MANY
    return f"{many:,}+" if number > many else f"{number:,}"


@bp.app_template_global("included")
def _is_included(feature: str) -> bool:
    return plan_use.is_included(g.account, feature)
