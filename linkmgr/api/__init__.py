"""The API: one module per word after /api/."""

from flask import Flask

from linkmgr.api import account, bio, campaigns, channels, domains, links, overlay, pixels, plans, qr, splash, users
from linkmgr.core.web.operation import sections

MODULES = (account, links, bio, domains, splash, overlay, pixels, qr, campaigns, channels, plans, users)


def init_app(app: Flask) -> None:
    for module in MODULES:
        app.register_blueprint(module.bp, url_prefix="/api")
    sections(app).extend(module.SECTION for module in MODULES)
