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


def _inner(holder: JsonSchema, key: str) -> tuple[JsonSchema, str]:
    """Return where the schema of the values is, which may be in an array."""
    return (holder[key], "items") if "items" in holder[key] else (holder, key)


def _enumerations(document: JsonSchema) -> Iterator[tuple[str, JsonSchema, str]]:
    for place, holder, key in _places(document):
        inner, inner_key = _inner(holder, key)
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
    _share(document["components"]["schemas"])


def _share(schemas: dict[str, JsonSchema]) -> None:
    """Give the members of records the enumerations of their bodies, so that programs can send back
    what they have read. Other responses may have further values."""
    for name, body in schemas.items():
        record = re.sub("(Create|Update)$", "", name)
        for shown in (record, f"{record}Listed", f"{record}Exported") if record != name else ():
            _share_members(schemas, body["properties"], schemas.get(shown, {}).get("properties", {}))


def _share_members(schemas: dict[str, JsonSchema], sent: JsonSchema, shown: JsonSchema) -> None:
    for member in sent.keys() & shown.keys():
        (body, body_key), (holder, key) = _inner(sent, member), _inner(shown, member)
        reference = {"$ref": body[body_key].get("$ref", "")}
        values = schemas.get(reference["$ref"].rpartition("/")[2], {}).get("enum")
        if values and values == holder[key].get("x-known-values"):
            about = holder[key].get("description")
            holder[key] = reference | ({"description": about} if about else {})
