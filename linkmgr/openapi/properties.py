"""JSON Schemas of the single member of a body: its type, description, example and default."""

from typing import Any

from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import Schema, fields

from linkmgr.fields import base
from linkmgr.openapi import operations
from linkmgr.openapi.schemas import JsonSchema
from linkmgr.openapi.types import allow_empty, schema_of


def _allow_null(schema: JsonSchema) -> JsonSchema:
    """Allow null, which means that an optional member is not sent."""
    if "anyOf" in schema:
        return schema | {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    optional = schema | {"type": [*kinds, "null"]}
    return optional | {"enum": [*schema["enum"], None]} if "enum" in schema else optional


def _annotate(schema: JsonSchema, field: fields.Field[Any]) -> JsonSchema:
    """Add the description, example and default of the member from linkmgr/openapi/operations."""
    parent = type(field.parent)
    assert issubclass(parent, Schema)
    assert field.name
    member = operations.member(parent, field.name)
    description = " ".join(filter(None, (member.description, schema.get("description"))))
    default = field.load_default if isinstance(field.load_default, str) else None
    if member.default is not None and issubclass(parent, base.New) and getattr(parent, "sent_on", "") != "update":
        default = member.default
    return (
        schema
        | ({"description": description} if description else {})
        | ({"x-default": default} if default not in (None, "") else {})
        | {"examples": [member.example]}
    )


def property_of(converter: OpenAPIConverter, field: fields.Field[Any], ret: JsonSchema) -> JsonSchema:
    """Return the schema of a member, replacing the one that apispec derived from the field."""
    schema = schema_of(field, converter)
    if getattr(field, "allow_empty", False):
        schema = allow_empty(schema)
    ret.clear()
    return _annotate(schema if field.required else _allow_null(schema), field)
