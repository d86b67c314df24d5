"""Objects as components of the document, because generators invent a name for each that has none.

A schema has its name as `title`. Without one, it is named after its place. Equal objects share a
component, so that what was read can be sent.
"""

import json
import re
from typing import Any

from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.shapes import ref

_ANNOTATIONS = ("title", "description", "examples")
_HOLDERS = ("items", "additionalProperties")


def _structure(schema: Any, name: str = "") -> Any:
    """Return what is the same in equal objects, whatever is said of them and whether they may be
    null."""
    if isinstance(schema, list):
        return [_structure(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _structure(value, key)
        for key, value in schema.items()
        if name == "properties" or key not in _ANNOTATIONS
    }
    return kept | ({"type": "object"} if name != "properties" and is_object(schema) else {})


def is_object(schema: JsonSchema) -> bool:
    return "object" in schema.get("type", ())


def _joined(place: str, member: str) -> str:
    words = re.sub("(Create|Update|Listed|Exported)$", "", place), *member.split("_")
    return "".join(word[:1].upper() + word[1:] for word in words)


class _Components:
    def __init__(self, schemas: dict[str, JsonSchema]) -> None:
        self.schemas = schemas
        self.names: dict[str, str] = {}  # by structure, of those without a title

    def extract_from(self, schema: JsonSchema, place: str) -> None:
        """Move the objects inside of a schema to the components."""
        for member, inner in schema.get("properties", {}).items():
            schema["properties"][member] = self.replaced(inner, _joined(place, member))
        for key in _HOLDERS:
            if isinstance(schema.get(key), dict):
                schema[key] = self.replaced(schema[key], re.sub("s$", "", place))

    def replaced(self, schema: JsonSchema, place: str) -> JsonSchema:
        if not is_object(schema):
            self.extract_from(schema, place)
            return schema
        title = schema.pop("title", "")
        structure = json.dumps(_structure(schema), sort_keys=True)
        name = title or self.names.setdefault(structure, place)
        self.extract_from(schema, name)
        reference = ref(self._add(name, schema))
        if "null" in schema["type"]:
            reference = {"anyOf": [reference, {"type": "null"}]}
        shared = self.schemas[name].get("examples")
        if schema.get("examples", shared) != shared:
            reference["x-examples"] = schema["examples"]  # `examples` beside a reference break generators
        return reference | ({"description": schema["description"]} if "description" in schema else {})

    def _add(self, name: str, schema: JsonSchema) -> str:
        named = schema | {"type": "object"}
        if _structure(self.schemas.setdefault(name, named)) != _structure(named):
            raise ValueError(f"Two objects of the document have the name {name}.")
        return name


def extract(document: JsonSchema) -> None:
    components = _Components(document["components"]["schemas"])
    for name, schema in [*components.schemas.items()]:
        components.extract_from(schema, name)
    for methods in document["paths"].values():
        for operation in methods.values():
            place = _joined("", operation["operationId"].replace(".", "_"))
            messages = [operation.get("requestBody", {}), *operation["responses"].values()]
            for content in (
                content for message in messages for content in message.get("content", {}).values()
            ):
                content["schema"] = components.replaced(content["schema"], place)
