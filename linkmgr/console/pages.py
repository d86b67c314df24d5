"""The pages of the console, one module per word or feature."""

from flask import Flask

from linkmgr.console import (  # noqa: F401 - they add their routes to the blueprints
    admin_activity,
    admin_factors,
    admin_links,
    admin_plans,
    admin_reports,
    admin_service,
    admin_users,
    binned,
    bio,
    campaigns,
    channels,
    controls,
    conversions,
    domains,
    home,
    keys,
    link_changes,
    link_try,
    links,
    members,
    overlay,
    pixels,
    public_statistics,
    qr,
    splash,
    statistics,
    transfer,
    utm,
    webhooks,
)
from linkmgr.console.admin_access import bp as administration
from linkmgr.console.frame import bp
from linkmgr.core.feature import has_feature

OF_FEATURES = {
    "utm": (utm.bp,),
    "scoped_keys": (keys.bp,),
    "webhooks": (webhooks.bp, admin_activity.bp),
    "imports": (transfer.bp,),
    "reports": (admin_reports.bp,),
    "members": (members.bp, members.of_person),
    "signin": (admin_factors.bp,),
    "conversions": (conversions.bp,),
    "public_statistics": (public_statistics.bp, public_statistics.of_visitors),
}


def init_app(app: Flask) -> None:
    app.add_template_filter(controls.json_text)
    own = [
        blueprint for name, blueprints in OF_FEATURES.items() if has_feature(name) for blueprint in blueprints
    ]
    for blueprint in (bp, administration, *own):
        app.register_blueprint(blueprint)
