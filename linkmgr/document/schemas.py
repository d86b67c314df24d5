"""JSON Schemas of bodies, from the fields that declare their members."""

from collections.abc import Iterator
from typing import Any

from marshmallow import Schema, fields, missing

from linkmgr.core.fields.bodies import Body, New
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.shapes import json_of, or_null


def _allow_null(schema: JsonSchema) -> JsonSchema:
    """Allow null, which means that an optional member is not sent."""
    if "type" not in schema:  # any value
        return schema
    optional = or_null(schema)
    return optional | {"enum": [*schema["enum"], None]} if "enum" in schema else optional


def _is_changed(field: fields.Field[Any]) -> bool:
    return isinstance(field.parent, Body) and field.parent.is_update


def _default(field: fields.Field[Any]) -> Any:
    if not isinstance(field.parent, New) or _is_changed(field):
        return None
    default = field.metadata["default"]
    default = field.load_default if default is None else default
    return None if default in (missing, "") or callable(default) else default


def _member(field: fields.Field[Any]) -> JsonSchema:
    schema = json_of(field) if field.required else _allow_null(json_of(field))
    null = "`null` removes it." if _is_changed(field) and field.metadata["removed"] is not None else ""
    description = " ".join(filter(None, (field.metadata["description"], schema.get("description"), null)))
    default = _default(field)
    return (
        schema
        | ({"description": description} if description else {})
        | ({} if default is None else {"x-default": default})
        | ({} if "$ref" in schema else {"examples": field.metadata["examples"]})
    )


def body_of(schema: type[Schema]) -> JsonSchema:
    members = schema().fields
    required = [name for name, field in members.items() if field.required]
    properties = {name: _member(field) for name, field in members.items()}
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def with_nested(schema: type[Schema]) -> Iterator[type[Schema]]:
    yield schema
    for field in schema().fields.values():
        for nested in getattr(field, "nested", ()):
            yield from with_nested(nested)
