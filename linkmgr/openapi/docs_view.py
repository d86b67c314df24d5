"""The document as people read it, for the page /api/docs."""

import json
import re
import shlex
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, NamedTuple

from linkmgr.openapi.schemas import JsonSchema

_ID = "17"  # stands for an id in what can be copied


class Member(NamedTuple):
    """Of a path, a query or a body."""

    name: str
    place: str
    required: bool
    kind: str
    description: str


class Answer(NamedTuple):
    status: str
    description: str
    codes: list[str]


class Operation(NamedTuple):
    id: str
    method: str
    path: str
    summary: str
    keyless: bool
    parameters: list[Member]
    members: list[Member]
    body: str
    curl: str
    success: str
    answers: list[Answer]


class Reader:
    def __init__(self, document: JsonSchema) -> None:
        self.document = document

    def resolved(self, what: JsonSchema) -> JsonSchema:
        if "$ref" not in what:
            return what
        _, _, kind, name = what["$ref"].split("/")
        found: JsonSchema = self.document["components"][kind][name]
        return found

    def kind(self, schema: JsonSchema) -> str:
        """In words."""
        schema = self.resolved(schema)
        if "anyOf" in schema:
            told = [each for each in schema["anyOf"] if each.get("type") != "null" and each.get("maxLength") != 0]
            return " or ".join(dict.fromkeys(map(self.kind, told)))
        if "enum" in schema:
            return " | ".join(str(each) for each in schema["enum"] if each is not None)
        kinds = schema.get("type", "any")
        names = [kinds] if isinstance(kinds, str) else [kind for kind in kinds if kind != "null"]
        return " or ".join(names) + self._bounds(schema)

    def _bounds(self, schema: JsonSchema) -> str:
        match schema:
            case {"items": items}:
                return f" of {self.kind(items)}"
            case {"properties": members}:
                return f" of {', '.join(members)}"
            case {"minimum": least, "maximum": most} if most < 2**31:
                return f", {least} to {most}"
            case {"minLength": least, "maxLength": most} if least:
                return f", {least} to {most} characters"
            case {"maxLength": most}:
                return f", at most {most} characters"
            case _:
                return ""

    def member(self, name: str, place: str, required: bool, schema: JsonSchema, description: str = "") -> Member:
        return Member(name, place, required, self.kind(schema), description or schema.get("description", ""))

    def members(self, schema: JsonSchema) -> list[Member]:
        found = self.resolved(schema)
        required = found.get("required", [])
        return [self.member(name, "body", name in required, each) for name, each in found["properties"].items()]

    def answers(self, responses: JsonSchema) -> Iterator[Answer]:
        for status, response in responses.items():
            found = self.resolved(response)
            if status != "200":
                codes = re.findall("^- `(\\w+)`", found["description"], re.MULTILINE)
                name = f"{status} {HTTPStatus(int(status)).phrase}"
                yield Answer(name, found["description"].partition("\n")[0], codes)

    def operation(self, path: str, method: str, found: JsonSchema) -> Operation:
        content = found.get("requestBody", {}).get("content", {}).get("application/json", {})
        parameters = [
            self.member(
                each["name"], each["in"], each.get("required", False), each["schema"], each.get("description", "")
            )
            for each in found.get("parameters", [])
        ]
        success = found["responses"]["200"]["content"]["application/json"].get("example")
        return Operation(
            found["operationId"],
            method.upper(),
            path,
            found["summary"],
            found.get("security") == [],
            parameters,
            self.members(content["schema"]) if content else [],
            _json(content["example"]) if content else "",
            self.curl(path, method.upper(), content.get("example"), found.get("security") != []),
            _json(success) if success else "",
            list(self.answers(found["responses"])),
        )

    def curl(self, path: str, method: str, body: Any, keyed: bool) -> str:
        filled_in = path.replace("{type}", "links")
        address = self.document["servers"][0]["url"] + re.sub(r"{\w+}", _ID, filled_in)
        words = ["curl", *(["-X", method] if method != "GET" else [])]
        words += ["-H", "Authorization: Bearer API_KEY"] if keyed else []
        words += ["-d", json.dumps(body)] if body else []
        return shlex.join([*words, address])

    def sections(self) -> dict[str, list[Operation]]:
        """By their tags, in the order of the document."""
        found: dict[str, list[Operation]] = {tag["name"]: [] for tag in self.document["tags"]}
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                found[operation["tags"][0]].append(self.operation(path, method, operation))
        return found


def _json(value: Any) -> str:
    return json.dumps(value, indent=2)
