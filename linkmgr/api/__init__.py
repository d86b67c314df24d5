"""The API: blueprints and schemas, one module per word after /api/."""

from flask import Flask
from werkzeug.routing import BaseConverter

from linkmgr.api import (
    account,
    bio,
    bulk,
    campaigns,
    channels,
    domains,
    export,
    imports,
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
from linkmgr.fields.base import MAX_ID

BLUEPRINTS = (
    account.bp,
    bio.bp,
    campaigns.bp,
    channels.bp,
    domains.bp,
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


class IdConverter(BaseConverter):
    """An id in a path. An id that no row can have becomes 0, so that it is not found."""

    regex = r"[0-9]+"

    def to_python(self, value: str) -> int:
        canonical = len(value) <= len(str(MAX_ID)) and value[0] != "0"
        return int(value) if canonical and int(value) <= MAX_ID else 0


def init_app(app: Flask) -> None:
    app.url_map.converters["id"] = IdConverter
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint, url_prefix="/api")
