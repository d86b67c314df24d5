"""The API: blueprints and schemas, one module per word after /api/."""

from flask import Flask

from linkmgr.api import (
    account,
    bio,
    bulk,
    campaigns,
    channels,
    domains,
    export,
    imports,
    keys,
    overlay,
    pixels,
    plans,
    qr,
    splash,
    stats,
    urls,
    users,
    webhooks,
)

BLUEPRINTS = (
    account.bp,
    bio.bp,
    campaigns.bp,
    channels.bp,
    domains.bp,
    keys.bp,
    keys.default_bp,
    splash.bp,
    overlay.bp,
    pixels.bp,
    plans.bp,
    qr.bp,
    stats.bp,
    urls.bp,
    users.bp,
    webhooks.bp,
    bulk.bp,
    export.bp,
    imports.bp,
)


def init_app(app: Flask) -> None:
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint, url_prefix="/api")
