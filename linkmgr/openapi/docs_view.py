"""The contents of /api/docs, computed from the OpenAPI document."""

import json
import re
import shlex
from collections.abc import Iterator
from http import HTTPStatus
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup, escape

from linkmgr.errors import CATALOGUE
from linkmgr.openapi.model import Resource
from linkmgr.openapi.operations import RESOURCES
from linkmgr.openapi.schemas import JsonSchema

_ID = "17"  # the id in examples


class Row(NamedTuple):
    """A row of a table: a member of a body, or a parameter of a path or a query."""

    name: str
    place: str
    needed: str
    kind: str
    default: Markup
    example: Markup
    description: Markup


class Table(NamedTuple):
    title: str
    rows: list[Row]


class Error(NamedTuple):
    code: str
    status: str
    message: str


class Operation(NamedTuple):
    id: str
    method: str
    path: str
    keyed: bool
    scope: str
    summary: str
    description: Markup
    parameters: list[Row]
    members: list[str]
    body: Markup
    curl: Markup
    success: Markup
    errors: list[Error]
    common: dict[str, list[str]]  # error codes that most operations share, by status


class Section(NamedTuple):
    name: str
    anchor: str
    description: Markup
    tables: list[Table]
    operations: list[Operation]


def _code(text: str) -> Markup:
    """Escape text outside of attributes. Quotes are not escaped, which keeps the page small."""
    escaped = str(escape(text)).replace("&#34;", '"').replace("&#39;", "'")
    return Markup(escaped)  # noqa: S704 - escape() was applied


def _inline(text: str) -> str:
    """Convert code and bold text, which may span lines."""
    with_code = re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", with_code, flags=re.DOTALL)


def prose(text: str) -> Markup:
    """Convert the part of Markdown that the descriptions use: paragraphs, lists, bold text and code."""
    blocks = []
    for block in text.split("\n\n") if text else []:
        if block.startswith("- "):
            items = re.split(r"\n- ", block.removeprefix("- "))
            blocks.append(f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</ul>")
        else:
            blocks.append(f"<p>{_inline(block)}</p>")
    return Markup("\n".join(blocks))  # noqa: S704 - _inline escapes


def error(code: str) -> Error:
    status, message = CATALOGUE[code]
    return Error(code, f"{status} {HTTPStatus(status).phrase}", re.sub(":[a-z]+}", "}", message))


def _codes_in(response: JsonSchema) -> list[str]:
    return re.findall("^- `(\\w+)`", response["description"], re.MULTILINE)


class Reader:
    def __init__(self, document: JsonSchema) -> None:
        self.document = document
        shared = [value for name, value in document["components"]["responses"].items() if "Refusal" in name]
        self.common = {code for response in shared for code in _codes_in(response)}

    def resolve(self, schema: JsonSchema) -> JsonSchema:
        if "$ref" not in schema:
            return schema
        _, _, kind, name = schema["$ref"].split("/")
        resolved: JsonSchema = self.document["components"][kind][name]
        return resolved

    # --- types

    def kind(self, schema: JsonSchema) -> str:
        schema = self.resolve(schema)
        if "anyOf" in schema:
            options = [option for option in schema["anyOf"] if option.get("type") != "null"]
            return ", or ".join(dict.fromkeys(map(self._alternative, options)))
        if "enum" in schema:
            return " | ".join(str(value) for value in schema["enum"] if value is not None)
        types = schema.get("type", "any")
        names = [types] if isinstance(types, str) else [name for name in types if name != "null"]
        return " or ".join(names) + self._bounds(schema)

    def _alternative(self, schema: JsonSchema) -> str:
        """Return the type of an alternative. The members of objects are in the tables of the resource."""
        return "object" if self.resolve(schema).get("type") == "object" else self.kind(schema)

    def _bounds(self, schema: JsonSchema) -> str:
        match schema:
            case {"items": items, **others}:
                bound = f", at most {others['maxItems']}" if "maxItems" in others else ""
                return f" of {self.kind(items).replace('object', 'objects', 1)}{bound}"
            case {"properties": members}:
                return f" of {', '.join(members)}"
            case {"minimum": minimum, "maximum": maximum} if maximum < 2**31:
                return f", {minimum} to {maximum}"
            case {"minLength": minimum, "maxLength": maximum} if minimum:
                return f", {minimum} to {maximum} characters"
            case {"maxLength": maximum}:
                return f", at most {maximum} characters"
            case _:
                return ""

    # --- members and parameters

    def row(self, name: str, schema: JsonSchema, *, place: str = "body", needed: str = "", text: str = "") -> Row:
        examples, default = schema.get("examples"), schema.get("x-default", schema.get("default"))
        return Row(
            name,
            place,
            needed,
            self.kind(schema),
            _code("" if default is None else json.dumps(default)),
            _code(json.dumps(examples[0], ensure_ascii=False) if examples else ""),
            Markup(_inline(text or schema.get("description", ""))),  # noqa: S704 - _inline escapes
        )

    def _inner_rows(self, name: str, schema: JsonSchema) -> Iterator[Row]:
        """Return the rows of the members of an object, or of the objects in an array."""
        schema = self.resolve(schema)
        item = self.resolve(schema.get("items", schema))
        prefix = f"{name}[]" if "items" in schema else name
        required = item.get("required", [])
        for inner, member in item.get("properties", {}).items():
            yield self.row(f"{prefix}.{inner}", member, needed="required" if inner in required else "")

    def _bodies(self, resource: Resource) -> list[tuple[str, JsonSchema]]:
        """Return the method and schema of each body of a resource, the create first."""
        schemas = self.document["components"]["schemas"]
        bodies = [
            (operation.method, schemas[operation.body.__name__]) for operation in resource.operations if operation.body
        ]
        return sorted(bodies, key=lambda body: body[0] != "POST")

    def _needed(self, name: str, bodies: list[tuple[str, JsonSchema]]) -> str:
        methods = {method for method, body in bodies if name in body["properties"]}
        required = {method for method, body in bodies if name in body.get("required", [])}
        if methods == {"POST"} and len(bodies) > 1:
            return "create only, required" if required else "create only"
        if required == methods:
            return "required"
        return f"required on {'create' if 'POST' in required else 'update'}" if required else ""

    def tables(self, resource: Resource) -> Iterator[Table]:
        bodies = self._bodies(resource)
        rows: list[Row] = []
        names = dict.fromkeys(name for _, body in bodies for name in body["properties"])
        for name in sorted(names, key=lambda name: "required" not in self._needed(name, bodies)):
            schema = next(body["properties"][name] for _, body in bodies if name in body["properties"])
            rows += [self.row(name, schema, needed=self._needed(name, bodies)), *self._inner_rows(name, schema)]
        if rows:
            yield Table("Members of the body", rows)
        for title, path in resource.tables.items():
            name, *inner = path.split(".")
            schema = self.document["components"]["schemas"][name]
            for member in inner:
                schema = schema["properties"][member]
            required = [] if inner else schema.get("required", [])
            members = schema["properties"].items()
            yield Table(
                title, [self.row(*member, needed="required" if member[0] in required else "") for member in members]
            )

    # --- operations

    def _codes(self, responses: JsonSchema) -> Iterator[str]:
        for status, response in responses.items():
            if status >= "400":
                yield from _codes_in(self.resolve(response))

    def _by_status(self, codes: Iterator[str]) -> dict[str, list[str]]:
        return {str(status): list(group) for status, group in groupby(codes, key=lambda code: CATALOGUE[code][0])}

    def operation(self, resource: Resource, path: str, method: str, entry: JsonSchema) -> Operation:
        content = entry.get("requestBody", {}).get("content", {}).get("application/json", {})
        success = entry["responses"]["200"]["content"].get("application/json", {}).get("example")
        codes = list(self._codes(entry["responses"]))
        security = entry.get("security", [])
        keyed = security != []
        return Operation(
            entry["operationId"].replace(".", "_"),
            method,
            path,
            keyed,
            security[0]["key"][0] if keyed else "",
            entry["summary"],
            prose(entry.get("description", "")),
            [
                self.row(
                    parameter["name"],
                    parameter["schema"],
                    place=parameter["in"],
                    needed="required" if parameter.get("required") else "",
                    text=parameter.get("description", ""),
                )
                for parameter in map(self.resolve, entry.get("parameters", []))
            ],
            list(self.resolve(content["schema"])["properties"]) if content else [],
            _code(json.dumps(content["example"], indent=2) if content else ""),
            _code(self.curl(path, method, content.get("example"), keyed, entry)),
            _code(json.dumps(success, indent=2) if success else ""),
            [error(code) for code in codes if code not in self.common],
            self._by_status(code for code in codes if code in self.common),
        )

    def curl(self, path: str, method: str, body: Any, keyed: bool, entry: JsonSchema) -> str:
        """Return the request as a command for a shell, with the placeholder API_KEY."""
        url = self.document["servers"][0]["url"] + re.sub(r"{\w+}", _ID, path.replace("{type}", "links"))
        values = {query["name"]: query["example"] for query in entry.get("parameters", []) if "example" in query}
        if values:
            url += "?" + "&".join(f"{name}={quote(str(value), safe=':,/')}" for name, value in values.items())
        words = [["-X", method]] if method != "GET" else []
        words += [["-H", "Authorization: Bearer API_KEY"]] if keyed else []
        words += [["-H", "Content-Type: application/json"], ["-d", json.dumps(body)]] if body else []
        words += [["--output", "export.zip"]] if "application/zip" in entry["responses"]["200"]["content"] else []
        return " \\\n  ".join([f"curl {shlex.quote(url)}", *map(shlex.join, words)])

    def sections(self) -> Iterator[Section]:
        for resource in RESOURCES:
            entries = [
                (operation, self.document["paths"][operation.path][operation.method.lower()])
                for operation in resource.operations
            ]
            yield Section(
                resource.name,
                resource.name.lower().replace(" ", "-"),
                prose(resource.description),
                list(self.tables(resource)),
                [self.operation(resource, operation.path, operation.method, entry) for operation, entry in entries],
            )
