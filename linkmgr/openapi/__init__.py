"""The OpenAPI document and its page, /api/docs.

Modules that build them are loaded when the document is first requested.
"""

from flask import Flask

from linkmgr.openapi import docs, openapi


def init_app(app: Flask) -> None:
    for blueprint in (docs.bp, openapi.bp):
        app.register_blueprint(blueprint, url_prefix="/api")
