"""The OpenAPI document and its page, /api/docs.

The modules that build them are imported on the first request.
"""

from functools import cache

from flask import Flask
from werkzeug.routing import Rule

from linkmgr.openapi import docs, openapi


def init_app(app: Flask) -> None:
    for blueprint in (docs.bp, openapi.bp):
        app.register_blueprint(blueprint, url_prefix="/api")


@cache
def _query_names() -> dict[tuple[str, str], frozenset[str]]:
    from linkmgr.openapi.operations import SECTIONS  # noqa: PLC0415

    return {
        (operation.method, operation.path): frozenset(parameter["name"] for parameter in operation.query)
        for section in SECTIONS
        for operation in section.operations
    }


def query_names(method: str, rule: Rule) -> frozenset[str]:
    """Return the names of the parameters of an operation."""
    from linkmgr.openapi.document import path_of  # noqa: PLC0415

    return _query_names().get(("GET" if method == "HEAD" else method, path_of(rule)), frozenset())
