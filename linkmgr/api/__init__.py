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
from linkmgr.resources.kinds import KINDS

MODULES = (account, bulk, campaigns, channels, export, imports, keys, overlay, plans, qr, stats, urls, users, webhooks)
_WORDS = {module.bp.name for module in MODULES}
USUAL = [kind for kind in KINDS if kind.plural not in _WORDS]  # resources without other operations
BLUEPRINTS = (*(module.bp for module in MODULES), keys.default_bp, *map(usual.blueprint, USUAL))


def init_app(app: Flask) -> None:
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint, url_prefix="/api")
