"""JSON Schemas with examples. The tests validate every response against them (tests/conftest.py),
so they cannot become outdated."""

from typing import Any

from marshmallow import fields

from linkmgr.core.fields.base import MAX_ID
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.resource import Resource

Shape = JsonSchema | str | int | bool  # a schema, or an example of simple values


def ref(name: str, section: str = "schemas") -> JsonSchema:
    return {"$ref": f"#/components/{section}/{name}"}


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


def object_of(**members: Shape) -> JsonSchema:
    properties = {name: schema_of(shape) for name, shape in members.items()}
    return {"type": "object", "properties": properties, "required": list(members)}


def text(example: str, **limits: Any) -> JsonSchema:
    return {"type": "string", "examples": [example], **limits}


def choice(*values: str) -> JsonSchema:
    return text(values[0], **{"x-known-values": list(values)})


def open_values(schema: Any) -> Any:
    """Return a schema of a request as one of a response, whose enumerations later versions may
    extend."""
    if isinstance(schema, list):
        return [open_values(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    opened = {"x-known-values": schema["enum"]} if schema.get("type") == "string" and "enum" in schema else {}
    return {
        name: open_values(value) for name, value in schema.items() if not (opened and name == "enum")
    } | opened


def or_null(shape: Shape) -> JsonSchema:
    schema = schema_of(shape)
    return schema | {"type": [schema["type"], "null"]}


def number(example: int, minimum: int = 0) -> JsonSchema:
    return {"type": "integer", "minimum": minimum, "examples": [example]}


def url(example: str) -> JsonSchema:
    return text(example, pattern="^https?://")


def own_url(path: str) -> JsonSchema:
    return url(f"https://go.example.org/{path}")


def named(name: str, schema: JsonSchema) -> JsonSchema:
    """Return the schema of an object with its name in the document."""
    return schema | {"title": name}


def map_of(shape: Shape, label: str, name: str = "Texts") -> JsonSchema:
    values = schema_of(shape)
    example = {label: values["examples"][0]}
    return named(name, {"type": "object", "additionalProperties": values, "examples": [example]})


ANY_OBJECT = named("AnyObject", {"type": "object", "additionalProperties": {}})


def array_of(items: Shape) -> JsonSchema:
    return {"type": "array", "items": schema_of(items)}


ID: JsonSchema = {"type": "integer", "minimum": 1, "maximum": MAX_ID, "examples": [17]}
CURSOR = text("17", pattern="^[0-9]{1,19}$")
TIMESTAMP = text("2026-11-21 09:30:00", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$")
FILE: JsonSchema = {"schema": {"type": "string", "format": "binary"}}
AMOUNT: JsonSchema = {"type": "number", "minimum": 0, "examples": [29.9]}
DAY = text("2026-11-21", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
WARNINGS = array_of({"type": "string"}) | {
    "minItems": 1,
    "description": "Values that were accepted but cannot have the effect that was probably meant. "
    "Absent without any.",
    "examples": [["The member 'alias' is unknown and was ignored. Did you mean 'custom'?"]],
}

ERRORS = array_of(ref("Problem")) | {
    "description": "Each problem of the body or the query if the code is `invalid`; else the "
    "member that it is about."
}


TRACE: dict[str, JsonSchema] = {
    "request_id": text("5d41402abc4b2a76", description="The id in the log, which is `X-Request-Id` too."),
    "docs": own_url("api/docs/errors#error-invalid") | {"description": "The paragraph of the `code`."},
}


def with_error(schema: JsonSchema, code: str, about: str) -> JsonSchema:
    """Return the schema of a success that can be an error with the status 200, as clients
    expect."""
    coded = text(code, description=f"{about} `error` is 1 then, and these members are those of an error.")
    error = {"error": number(0), "code": coded, "message": {"type": "string"}, **TRACE}
    return schema | {"properties": schema["properties"] | error}


CHANGES = named("Changes", {"type": "object", "additionalProperties": {"type": "array", "items": {}}})


ACTOR = object_of(user=or_null(ID), key=or_null(ID))
ACTOR["properties"]["name"] = or_null("erin") | {"description": "Only in the list of changes."}


def with_actor(event: JsonSchema) -> JsonSchema:
    actor = ref("Actor") | {
        "description": "Who created, changed or deleted the row. `key` is null for the default key."
    }
    about = "By member of an updated record: its previous value and the one in `data`."
    changes = CHANGES | {"description": about}
    return event | {"properties": event["properties"] | {"actor": actor, "changes": changes}}


def with_warnings(schema: JsonSchema) -> JsonSchema:
    return (
        schema | {"properties": schema["properties"] | {"warnings": WARNINGS}}
        if "properties" in schema
        else schema
    )


PAGE = {
    "result": number(40) | {"description": "The total number of rows."},
    "perpage": number(15, 1),
    "maxpage": number(3, 1),
    "currentpage": number(1, 1) | {"description": "Not with `after`."},
    "nextpage": number(2) | {"description": "0 on the last page. Not with `after`."},
    "next": CURSOR | {"description": "The `after` of the next page. Absent on the last page."},
}
# Records of several resources
RECORDS: dict[str, JsonSchema] = {
    "Success": {"type": "integer", "enum": [0], "examples": [0]},
    "Failure": {"type": "integer", "enum": [1], "examples": [1]},
    "Done": with_warnings(object_of(error=ref("Success"), message="Done.")),
}

# --- records


def json_of(field: fields.Field[Any]) -> JsonSchema:
    schema: JsonSchema = field.json  # type: ignore[attr-defined]
    return _allow_empty(schema) if getattr(field, "allow_empty", False) else schema


def _allow_empty(schema: JsonSchema) -> JsonSchema:
    form = {"format": "iri-reference"} if schema.get("format") == "iri" else {}
    pattern = {"pattern": f"^$|{schema['pattern']}"} if "pattern" in schema else {}
    return schema | form | pattern | ({"minLength": 0} if "minLength" in schema else {})


_KEPT = (
    "title",
    "type",
    "enum",
    "minimum",
    "pattern",
    "items",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
)


def _in_record(field: fields.Field[Any]) -> JsonSchema:
    """Return the schema of a member in a record: without the bounds of what may be sent."""
    schema: JsonSchema = field.json_shown if hasattr(field, "json_shown") else json_of(field)
    schema = open_values({name: value for name, value in schema.items() if name in _KEPT})
    schema["examples"] = field.metadata["examples"]
    if field.dump_only and (description := field.metadata["description"]):
        schema["description"] = description
    return or_null(schema) if field.allow_none else schema


def member(resource: type[Resource], name: str) -> JsonSchema:
    return _in_record(resource().fields[name])


def members(resource: type[Resource], shown_in: str = "record") -> dict[str, JsonSchema]:
    declared = resource().fields
    return {name: _in_record(declared[name]) for name in resource.shown(shown_in)}


def record_of(resource: type[Resource], shown_in: str = "record") -> JsonSchema:
    properties = members(resource, shown_in)
    return {"type": "object", "properties": properties, "required": list(properties)}


def records_of(resource: type[Resource]) -> dict[str, JsonSchema]:
    return {
        name_of(resource, shown_in): record_of(resource, shown_in)
        for shown_in in ("list", "export", "record")
    }


def name_of(resource: type[Resource], shown_in: str = "record") -> str:
    suffix = {"list": "Listed", "export": "Exported"}.get(shown_in, "")
    return resource.__name__ + (suffix if resource.shown(shown_in) != resource.shown() else "")


# --- responses


def success(name: str, /, **members: Shape) -> JsonSchema:
    return named(name, object_of(error=ref("Success"), **members))


def done(message: str) -> JsonSchema:
    return ref("Done") | {"examples": [{"error": 0, "message": message}]}


def _name(rows: type[Resource] | str, shown_in: str = "record") -> str:
    return rows if isinstance(rows, str) else name_of(rows, shown_in)


def page_of(name: str, key: str, rows: str, **others: Shape) -> JsonSchema:
    page = object_of(**PAGE, **{key: array_of(ref(rows))}, **others)
    return named(f"{name}Page", page) | {"required": ["result", "perpage", "maxpage", key]}


def listing_schema(key: str, resource: type[Resource] | str, **others: Shape) -> JsonSchema:
    name = _name(resource)
    return success(f"{name}List", data=page_of(name, key, _name(resource, "list")), **others)


def with_message(message: str, schema: JsonSchema, *unread: str) -> JsonSchema:
    """Return the schema of the responses to changes of a record, or to others of the same type,
    which have no message and none of the `unread` members."""
    about: JsonSchema = {"description": "Only in the response to a change."}
    members = {"error": schema["properties"]["error"], "message": {"type": "string"}, **schema["properties"]}
    for name in ("message", *unread):  # an example of a response has the members with an example
        kept = {key: value for key, value in members[name].items() if key != "examples"}
        members[name] = kept | about | ({"examples": [message]} if message else {})
    return schema | {"properties": members}


def record_schema(resource: type[Resource] | str, verb: str, **members: Shape) -> JsonSchema:
    name = _name(resource)
    return success(f"{name}{verb}", **members, record=ref(name))


def reading_schema(resource: type[Resource] | str) -> JsonSchema:
    return changed_schema("", resource)


def changed_schema(message: str, resource: type[Resource] | str) -> JsonSchema:
    return with_message(message, record_schema(resource, "Response", data=ref(_name(resource))))


def created_schema(resource: type[Resource] | str, **members: Shape) -> JsonSchema:
    return record_schema(resource, "Created", **({"id": ID} | members), data=ref(_name(resource)))


def all_of(resource: type[Resource] | str, name: str = "") -> JsonSchema:
    rows = _name(resource)
    return success(name or f"{rows}List", data=array_of(ref(rows)))


def example_of(schema: Any, records: dict[str, JsonSchema]) -> Any:
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return example_of(records[schema["$ref"].rpartition("/")[2]], records)
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], records)
    if schema.get("items"):
        return [example_of(schema["items"], records)]
    examples = {name: example_of(member, records) for name, member in schema.get("properties", {}).items()}
    needed = schema.get("required", ())
    return {name: example for name, example in examples.items() if name in needed or example != {}}
