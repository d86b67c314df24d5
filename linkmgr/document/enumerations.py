"""Enumerations of requests as components of the document, because generators make a type of each
that they find."""

import re
from collections.abc import Iterator

from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.shapes import ref

_KEPT = ("x-default", "examples")


def _places(document: JsonSchema) -> Iterator[tuple[str, JsonSchema, str]]:
    for methods in document["paths"].values():
        for operation in methods.values():
            word = operation["operationId"].partition(".")[0]
            for parameter in operation.get("parameters", []):
                if "schema" in parameter:
                    yield f"{word}_{parameter['name']}", parameter, "schema"
    for name, schema in document["components"]["schemas"].items():
        for member in schema.get("properties", {}):
            yield f"{re.sub('(Create|Update)$', '', name)}_{member}", schema["properties"], member


def _enumerations(document: JsonSchema) -> Iterator[tuple[str, JsonSchema, str]]:
    for place, holder, key in _places(document):
        is_array = "items" in holder[key]
        inner, inner_key = (holder[key], "items") if is_array else (holder, key)
        if "string" in inner[inner_key].get("type", ()) and "enum" in inner[inner_key]:
            name = re.sub("(?:^|_)[a-z]", lambda start: start[0][-1].upper(), place)
            yield inner[inner_key].get("title", name), inner, inner_key


def _constant(enumeration: str, value: str) -> str:
    """Return the name of a value in generated code: without it, Ruby has none for `*`, and Go one
    for all enumerations that share the value."""
    words = re.findall("[A-Z][a-z0-9]*", enumeration) + re.findall(r"\w+", value.replace("*", "all"))
    return "_".join(words).upper()


def extract(document: JsonSchema) -> None:
    """Move the enumerations of parameters and bodies to the components. Equal ones have the first
    one's name, but each parameter its own default."""
    components: dict[str, JsonSchema] = {}
    names: dict[tuple[str, ...], str] = {}
    for place, holder, key in _enumerations(document):
        schema = holder[key]
        values = [value for value in schema["enum"] if value is not None]  # in a body, null means not sent
        name = names.setdefault(tuple(values), place)
        kept = {name: schema[name] for name in _KEPT if name in schema}
        constants = [_constant(name, value) for value in values]
        components.setdefault(name, {"type": "string", "enum": values, "x-enum-varnames": constants, **kept})
        # A parameter has it beside its schema: generators know no type beside a reference
        if "default" in schema:
            holder["x-default"] = schema["default"]
        holder[key] = ref(name) | ({"description": schema["description"]} if "description" in schema else {})
    document["components"]["schemas"] |= components
