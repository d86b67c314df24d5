"""The OpenAPI document and its page, /api/docs.

The modules that build them are imported on the first request.
"""

from flask import Flask

from linkmgr.openapi import docs, openapi


def init_app(app: Flask) -> None:
    for blueprint in (docs.bp, openapi.bp):
        app.register_blueprint(blueprint, url_prefix="/api")
