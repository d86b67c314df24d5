"""JSON Schemas of responses, each with an example.

The tests validate every response against them (tests/conftest.py), so they cannot become outdated.
"""

from typing import Any

from linkmgr.fields.base import MAX_ID

JsonSchema = dict[str, Any]
Shape = JsonSchema | str | int | bool  # a schema, or an example of simple values


def ref(name: str) -> JsonSchema:
    return {"$ref": f"#/components/schemas/{name}"}


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
