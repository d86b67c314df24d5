"""The OpenAPI document and its documentation page.

The document is built when it is first requested.
"""

from flask import Flask

from linkmgr.openapi import docs, openapi


def init_app(app: Flask) -> None:
    for blueprint in (openapi.bp, docs.bp):
        app.register_blueprint(blueprint, url_prefix="/api")
