"""The API: one module per word after /api/, except for the words that have only the usual operations."""

from flask import Flask

from linkmgr.api import (
    account,
    bulk,
    campaigns,
    channels,
    export,
    imports,
    keys,
    overlay,
    plans,
    qr,
    stats,
    urls,
    users,
    usual,
    webhooks,
)
from linkmgr.resources.bio import BioPage
from linkmgr.resources.domains import Domain
from linkmgr.resources.pixels import Pixel
from linkmgr.resources.resource import Resource
from linkmgr.resources.splash import Splash

MODULES = (account, bulk, campaigns, channels, export, imports, keys, overlay, plans, qr, stats, urls, users, webhooks)
USUAL: tuple[type[Resource], ...] = (BioPage, Domain, Pixel, Splash)  # resources without other operations
BLUEPRINTS = (*(module.bp for module in MODULES), keys.default_bp, *map(usual.blueprint, USUAL))


def init_app(app: Flask) -> None:
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint, url_prefix="/api")
