"""The API: one module per word after /api/."""

from flask import Flask

from linkmgr.api import (
    account,
    bio,
    bulk,
    campaigns,
    channels,
    conversions,
    domains,
    export,
    imports,
    keys,
    overlay,
    pixels,
    plans,
    qr,
    reports,
    splash,
    stats,
    urls,
    users,
    utm,
    webhooks,
)
from linkmgr.fields.member import JsonSchema

MODULES = (
    account,
    urls,
    bio,
    domains,
    splash,
    overlay,
    pixels,
    qr,
    campaigns,
    channels,
    utm,
    bulk,
    export,
    imports,
    stats,
    conversions,
    keys,
    webhooks,
    plans,
    users,
    reports,
)


def records() -> dict[str, JsonSchema]:
    """Return the schemas of the records of all sections by name."""
    return {name: record for module in MODULES for name, record in module.SECTION.records().items()}


def init_app(app: Flask) -> None:
    for module in MODULES:
        app.register_blueprint(module.bp, url_prefix="/api")
