"""JSON Schemas: of bodies, from the fields that declare their members, and of responses, each with an example.

The tests validate every response against them (tests/conftest.py), so they cannot become outdated.
"""

from collections.abc import Iterator
from typing import Any

from marshmallow import Schema, fields, missing

from linkmgr.fields.base import MAX_ID
from linkmgr.fields.bodies import New

JsonSchema = dict[str, Any]
Shape = JsonSchema | str | int | bool  # a schema, or an example of simple values


def ref(name: str, kind: str = "schemas") -> JsonSchema:
    return {"$ref": f"#/components/{kind}/{name}"}


def schema_of(shape: Shape) -> JsonSchema:
    """Return the schema of a shape. An integer is an example of those from 0."""
    match shape:
        case bool():
            return {"type": "boolean", "examples": [shape]}
        case int():
            return number(shape)
        case str():
            return text(shape)
        case _:
            return shape


def record(**members: Shape) -> JsonSchema:
    """Return the schema of an object with these members. Later versions may add some."""
    properties = {name: schema_of(shape) for name, shape in members.items()}
    return {"type": "object", "properties": properties, "required": list(members)}


def text(example: str, **limits: Any) -> JsonSchema:
    return {"type": "string", "examples": [example], **limits}


def choice(*values: str) -> JsonSchema:
    return text(values[0], **{"x-known-values": list(values)})


def open_values(schema: Any) -> Any:
    """Return a schema of a request as one of a response, whose enumerations later versions may extend."""
    if isinstance(schema, list):
        return [open_values(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    opened = {"x-known-values": schema["enum"]} if schema.get("type") == "string" and "enum" in schema else {}
    return {name: open_values(value) for name, value in schema.items() if not (opened and name == "enum")} | opened


def or_null(shape: Shape) -> JsonSchema:
    schema = schema_of(shape)
    return schema | {"type": [schema["type"], "null"]}


def number(example: int, minimum: int = 0) -> JsonSchema:
    return {"type": "integer", "minimum": minimum, "examples": [example]}


def url(example: str) -> JsonSchema:
    return text(example, pattern="^https?://")


def own_url(path: str) -> JsonSchema:
    return url(f"https://go.example.org/{path}")


def map_of(shape: Shape, label: str) -> JsonSchema:
    values = schema_of(shape)
    return {"type": "object", "additionalProperties": values, "examples": [{label: values["examples"][0]}]}


def array_of(items: Shape) -> JsonSchema:
    return {"type": "array", "items": schema_of(items)}


ID: JsonSchema = {"type": "integer", "minimum": 1, "maximum": MAX_ID, "examples": [17]}
CURSOR = text("17", pattern="^[0-9]{1,19}$")
TIMESTAMP = text("2026-11-21 09:30:00", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$")
FILE: JsonSchema = {"schema": {"type": "string", "format": "binary"}}
DAY = text("2026-11-21", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
_COUNTS = map_of(text("12", pattern="^[0-9]+$"), "Germany")

STATISTICS = record(
    clicks=12,
    uniqueClicks=9,
    topCountries=_COUNTS,
    topReferrers=_COUNTS,
    topBrowsers=_COUNTS,
    topOs=_COUNTS,
    socialCount=record(facebook=1, twitter=0, instagram=3),
)

WARNINGS = array_of({"type": "string"}) | {
    "minItems": 1,
    "description": "Values that were accepted but cannot have the effect that was probably meant. Absent without any.",
    "examples": [["The member 'alias' is unknown and was ignored. Did you mean 'custom'?"]],
}

ERRORS = array_of(ref("Problem")) | {"description": "Each problem of the body or the query, if the code is `invalid`."}


def with_warnings(schema: JsonSchema) -> JsonSchema:
    """Return the schema of a success with the optional member `warnings`. A named one has it."""
    return schema | {"properties": schema["properties"] | {"warnings": WARNINGS}} if "properties" in schema else schema


# Records of several resources
RECORDS: dict[str, JsonSchema] = {
    "Statistics": STATISTICS,
    "Page": record(
        result=number(40) | {"description": "The total number of rows."},
        perpage=number(15, 1),
        maxpage=number(3, 1),
        currentpage=number(1, 1) | {"description": "Not with `after`."},
        nextpage=number(2) | {"description": "0 on the last page. Not with `after`."},
        next=CURSOR | {"description": "The `after` of the next page. Absent on the last page."},
    )
    | {"required": ["result", "perpage", "maxpage"]},
    "Success": {"type": "integer", "enum": [0], "examples": [0]},
    "Done": with_warnings(record(error=ref("Success"), message="Done.")),
}

# --- bodies


def json_of(field: fields.Field[Any]) -> JsonSchema:
    """Return the schema of what a field accepts, besides null."""
    schema: JsonSchema = field.json  # type: ignore[attr-defined]
    return _allow_empty(schema) if getattr(field, "allow_empty", False) else schema


def _allow_empty(schema: JsonSchema) -> JsonSchema:
    form = {"format": "iri-reference"} if schema.get("format") == "iri" else {}
    pattern = {"pattern": f"^$|{schema['pattern']}"} if "pattern" in schema else {}
    return schema | form | pattern | ({"minLength": 0} if "minLength" in schema else {})


def _allow_null(schema: JsonSchema) -> JsonSchema:
    """Allow null, which means that an optional member is not sent."""
    if "type" not in schema:  # any value
        return schema
    optional = or_null(schema)
    return optional | {"enum": [*schema["enum"], None]} if "enum" in schema else optional


def _default(field: fields.Field[Any]) -> Any:
    """Return what a create stores if the member is not sent, or None."""
    if not isinstance(field.parent, New) or getattr(field.parent, "sent_on", "") == "update":
        return None
    default = field.metadata["default"]
    default = field.load_default if default is None else default
    return None if default in (missing, "") or callable(default) else default


def _member(field: fields.Field[Any]) -> JsonSchema:
    schema = json_of(field) if field.required else _allow_null(json_of(field))
    description = " ".join(filter(None, (field.metadata["description"], schema.get("description"))))
    default = _default(field)
    return (
        schema
        | ({"description": description} if description else {})
        | ({} if default is None else {"x-default": default})
        | {"examples": field.metadata["examples"]}
    )


def body_of(schema: type[Schema]) -> JsonSchema:
    members = schema().fields
    required = [name for name, field in members.items() if field.required]
    properties = {name: _member(field) for name, field in members.items()}
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def with_nested(schema: type[Schema]) -> Iterator[type[Schema]]:
    """Return a schema, and those that its fields refer to."""
    yield schema
    for field in schema().fields.values():
        for nested in getattr(field, "nested", ()):
            yield from with_nested(nested)


# --- whole responses


def success(**members: Shape) -> JsonSchema:
    return record(error=ref("Success"), **members)


def done(message: str) -> JsonSchema:
    return ref("Done") | {"examples": [{"error": 0, "message": message}]}


def listing(key: str, name: str, **others: Shape) -> JsonSchema:
    rows = record(**{key: array_of(ref(name))})
    return success(data={"allOf": [ref("Page"), rows]}, **others)


def reading(name: str) -> JsonSchema:
    return success(data=ref(name))


def changed(message: str, name: str) -> JsonSchema:
    """Return the schema of the response to an update: the message, and the record as it is read."""
    return success(message=text(message), data=ref(name))


def created(name: str, **members: Shape) -> JsonSchema:
    """Return the schema of the response to a create: the members that the specification names, and the record."""
    return success(**({"id": ID} | members), data=ref(name))


def all_of(name: str) -> JsonSchema:
    return success(data=array_of(ref(name)))


def example_of(schema: Any, records: dict[str, JsonSchema]) -> Any:
    """Compose the example of a JSON Schema from the examples of its members."""
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return example_of(records[schema["$ref"].rpartition("/")[2]], records)
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], records)
    if "allOf" in schema:
        return {name: value for part in schema["allOf"] for name, value in example_of(part, records).items()}
    if schema.get("items"):
        return [example_of(schema["items"], records)]
    return {name: example_of(member, records) for name, member in schema.get("properties", {}).items()}
