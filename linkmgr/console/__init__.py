"""/console: everything that the API does, in a browser. One module per resource; see CONTRIBUTING."""

from flask import Flask

from linkmgr.console import (  # noqa: F401 - they add their routes to the blueprints
    account,
    admin_activity,
    admin_plans,
    admin_reports,
    admin_service,
    admin_users,
    avatar,
    binned,
    bio,
    campaigns,
    channels,
    domains,
    home,
    keys,
    link_changes,
    links,
    login,
    overlay,
    pixels,
    qr,
    splash,
    statistics,
    transfer,
    utm,
    webhooks,
)
from linkmgr.console.admin_access import bp as administration
from linkmgr.console.frame import bp


def init_app(app: Flask) -> None:
    for blueprint in (login.bp, account.bp, bp, administration, avatar.bp):
        app.register_blueprint(blueprint)
