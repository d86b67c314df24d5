"""The frame of all pages of the console: the session, the navigation, and how pages show times and lists."""

from typing import NamedTuple

from flask import Blueprint, g, request
from werkzeug.wrappers import Response

from linkmgr.pages import plan_use, signed_in
from linkmgr.web import security_headers

bp = Blueprint("console", __name__, url_prefix="/console")
bp.before_request(signed_in.require_session)
bp.after_request(security_headers.keep_private)


@bp.after_request
def _allow_previews(response: Response) -> Response:
    """Let scripts fetch pages of the console, which the policy of other pages forbids."""
    name, policy = security_headers.policy(request.environ)
    response.headers.setdefault(name, f"{policy}; connect-src 'self'")
    return response


class Entry(NamedTuple):
    """An entry of the navigation. It is current on all pages whose endpoints begin with its prefix."""

    label: str
    endpoint: str
    prefix: str


class Chip(NamedTuple):
    """A filter that is set, and the URL of the page without it."""

    label: str
    url: str


# By heading. A page that has its own entry adds it here.
NAVIGATION = {
    "": (
        Entry("Home", "console.home", "console.home"),
        Entry("Links", "console.links", "console.link"),
        Entry("Statistics", "console.statistics", "console.statistics"),
        Entry("QR codes", "console.qrs", "console.qr"),
        Entry("Bio pages", "console.bios", "console.bio"),
        Entry("Campaigns", "console.campaigns", "console.campaign"),
        Entry("Channels", "console.channels", "console.channel"),
    ),
    "Show and track": (
        Entry("Splash pages", "console.splash", "console.splash"),
        Entry("Overlays", "console.overlays", "console.overlay"),
        Entry("Pixels", "console.pixels", "console.pixel"),
    ),
    "Set up": (
        Entry("Domains", "console.domains", "console.domain"),
        Entry("API keys", "console.keys", "console.key"),
        Entry("Webhooks", "console.webhooks", "console.webhook"),
        Entry("Import and export", "console.imports", "console.import"),
        Entry("Account", "account_page.show", "account_page."),
        Entry("API documentation", "docs.page", "docs."),
    ),
    "Administration": (
        Entry("Service", "administration.service", "administration.service"),
        Entry("Users", "administration.users", "administration.user"),
        Entry("Plans", "administration.plans", "administration.plan"),
    ),
}


def _navigation() -> dict[str, list[tuple[Entry, bool]]]:
    endpoint = request.endpoint or ""
    return {
        heading: [(entry, endpoint.startswith(entry.prefix)) for entry in entries]
        for heading, entries in NAVIGATION.items()
        if heading != "Administration" or g.admin
    }


@bp.record_once
def _add_helpers(state: object) -> None:
    app = state.app  # type: ignore[attr-defined]
    app.add_template_global(_navigation, "navigation")
    app.add_template_global(lambda feature: plan_use.is_included(g.account, feature), "included")
    signed_in.init_app(app)
