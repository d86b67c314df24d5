"""The OpenAPI document and its page, /api/docs.

The modules that build them are imported on the first request.
"""

from functools import cache

from flask import Flask
from marshmallow import Schema
from werkzeug.routing import Rule

from linkmgr.openapi import docs, openapi


def init_app(app: Flask) -> None:
    for blueprint in (docs.bp, openapi.bp):
        app.register_blueprint(blueprint, url_prefix="/api")


@cache
def shown_members() -> dict[type[Schema], frozenset[str]]:
    """Return the members of the records of a resource by the schemas of its bodies."""
    from linkmgr.openapi.operations import RESOURCES  # noqa: PLC0415

    return {
        operation.body: frozenset(
            {
                "short",
                "shorturl",
                *getattr(operation.body, "also_shown", ()),
                *(name for record in resource.records.values() for name in record["properties"]),
            }
        )
        for resource in RESOURCES
        for operation in resource.operations
        if operation.body
    }


@cache
def _query_names() -> dict[tuple[str, str], frozenset[str]]:
    from linkmgr.openapi.operations import RESOURCES  # noqa: PLC0415

    return {
        (operation.method, operation.path): frozenset(parameter["name"] for parameter in operation.query)
        for resource in RESOURCES
        for operation in resource.operations
    }


def query_names(method: str, rule: Rule) -> frozenset[str]:
    """Return the names of the parameters of an operation."""
    from linkmgr.openapi.document import path_of  # noqa: PLC0415

    return _query_names().get(("GET" if method == "HEAD" else method, path_of(rule)), frozenset())
