"""Capabilities besides the documented API, a folder each."""

from flask import Flask

from linkmgr.core.web.operation import sections
from linkmgr.features.bulk import handlers as bulk
from linkmgr.features.conversions import handlers as conversions
from linkmgr.features.conversions import pixel
from linkmgr.features.exports import handlers as exports
from linkmgr.features.imports import handlers as imports
from linkmgr.features.reports import handlers as reports
from linkmgr.features.reports import preview
from linkmgr.features.scoped_keys import handlers as scoped_keys
from linkmgr.features.statistics import handlers as statistics
from linkmgr.features.utm import handlers as utm
from linkmgr.features.webhooks import handlers as webhooks

MODULES = (utm, bulk, exports, imports, statistics, conversions, scoped_keys, webhooks, reports)
PAGES = (pixel, preview)


def init_app(app: Flask) -> None:
    for module in MODULES:
        app.register_blueprint(module.bp, url_prefix="/api")
    sections(app).extend(module.SECTION for module in MODULES)
    for page in PAGES:
        app.register_blueprint(page.bp)
