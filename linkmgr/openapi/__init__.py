"""The OpenAPI document and its page, /api/docs.

The modules that build them are imported on the first request.
"""

from functools import cache

from flask import Flask
from marshmallow import Schema

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
            {"short", "shorturl", *(name for record in resource.records.values() for name in record["properties"])}
        )
        for resource in RESOURCES
        for operation in resource.operations
        if operation.body
    }
