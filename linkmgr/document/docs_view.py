"""The contents of /api/docs, computed from the OpenAPI document."""

import json
import re
import shlex
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from linkmgr.core.error_catalogue import CATALOGUE
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.query import NAMED_PAGING, STATISTICS
from linkmgr.core.web.operation import Route, Section
from linkmgr.document.document import Contents
from linkmgr.document.responses import SHARED, by_status, codes_of

_ID = "17"  # the id in examples
_SHOWN, _FEW_MEMBERS = "{...}", 4
# Parameters that the conventions describe
_SHARED_PARAMETERS = (*NAMED_PAGING.values(), *STATISTICS.values())
# Values of the template: rows of tables, errors, operations and sections
View = dict[str, Any]


def _code(text: str) -> Markup:
    """Escape text outside of attributes. Quotes are not escaped, which keeps the page small."""
    escaped = str(escape(text)).replace("&#34;", '"').replace("&#39;", "'")
    return Markup(escaped)  # noqa: S704 - escape() was applied


def _inline(text: str) -> str:
    with_links = re.sub("`(/api/docs/[a-z-]+)`", r'<a href="\1">\1</a>', str(escape(text)))
    with_code = re.sub("`([^`]+)`", r"<code>\1</code>", with_links)
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", with_code, flags=re.DOTALL)


def prose(text: str) -> Markup:
    blocks = []
    for block in text.split("\n\n") if text else []:
        if block.startswith("- "):
            items = re.split(r"\n- ", block.removeprefix("- "))
            blocks.append(f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</ul>")
        elif block.startswith("## "):
            blocks.append(f"<h2>{_inline(block.removeprefix('## '))}</h2>")
        else:
            blocks.append(f"<p>{_inline(block)}</p>")
    return Markup("\n".join(blocks))  # noqa: S704 - _inline escapes


def programs() -> View:
    """Return the page of the first programs."""
    folder = Path(__file__).parent / "programs"
    languages = (("Python", "python3", "py"), ("JavaScript", "node", "mjs"), ("PHP", "php", "php"))
    files = [(language, command, f"first_program.{ending}") for language, command, ending in languages]
    return {
        "name": "First program",
        "anchor": "first-program",
        "programs": [
            {"language": language, "command": f"{command} {name}", "text": _code((folder / name).read_text())}
            for language, command, name in files
        ],
    }


def error(code: str) -> View:
    status, message = CATALOGUE[code]
    return {
        "name": code,
        "type": f"{status} {HTTPStatus(status).phrase}",
        "description": re.sub(":[a-z]+}", "}", message),
    }


def _without_repetitions(value: Any, shown: set[str]) -> Any:
    """Return an example whose larger objects that were `shown` before are "{...}"."""
    if isinstance(value, list):
        return [_without_repetitions(item, shown) for item in value]
    if not isinstance(value, dict):
        return value
    text = json.dumps(value)
    if text in shown:
        return _SHOWN
    if len(value) > _FEW_MEMBERS:
        shown.add(text)
    return {name: _without_repetitions(member, shown) for name, member in value.items()}


class Reader:
    def __init__(self, document: JsonSchema, contents: Contents) -> None:
        self.document, self.contents = document, contents
        self.shown: set[str] = set()  # objects in the examples of a section

    def resolve(self, schema: JsonSchema) -> JsonSchema:
        if "anyOf" in schema:  # an object, or null
            return self.resolve(schema["anyOf"][0])
        if "$ref" not in schema:
            return schema
        _, _, section, name = schema["$ref"].split("/")
        resolved: JsonSchema = self.document["components"][section][name]
        return resolved

    # --- types

    def type_of(self, schema: JsonSchema) -> str:
        schema = self.resolve(schema)
        if values := schema.get("enum", schema.get("x-known-values")):
            return " | ".join(str(value) for value in values if value is not None)
        types = schema.get("type", "any")
        names = [types] if isinstance(types, str) else [name for name in types if name != "null"]
        return " or ".join(names) + self._bounds(schema)

    def _bounds(self, schema: JsonSchema) -> str:
        match schema:
            case {"items": items, **others}:
                bound = f", at most {others['maxItems']}" if "maxItems" in others else ""
                of = self.type_of(items).replace("object", "objects", 1)
                return f" of {of.partition(',')[0] if of.startswith('string') else of}{bound}"
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

    def row(self, name: str, schema: JsonSchema, place: str = "body", needed: str = "") -> View:
        schema = self.resolve(schema) | schema
        examples = schema.get("x-examples", schema.get("examples"))
        default = schema.get("x-default", schema.get("default"))
        return {
            "name": name,
            "place": place,
            "needed": needed,
            "type": self.type_of(schema),
            "default": _code("" if default is None else json.dumps(default)),
            "example": _code(json.dumps(examples[0], ensure_ascii=False) if examples else ""),
            "description": Markup(_inline(schema.get("description", ""))),  # noqa: S704 - _inline escapes
        }

    def _rows(self, schema: JsonSchema, prefix: str = "") -> list[View]:
        members, required = schema.get("properties", {}).items(), schema.get("required", [])
        return [
            self.row(prefix + name, member, needed="required" * (name in required))
            for name, member in members
        ]

    def _inner_rows(self, name: str, schema: JsonSchema) -> list[View]:
        schema = self.resolve(schema)
        item = self.resolve(schema.get("items", schema))
        rows = self._rows(item, f"{name}[]." if "items" in schema else f"{name}.")
        return [row | {"example": ""} for row in rows]  # the example of the member has them all

    def _bodies(self, routes: list[Route]) -> list[tuple[str, JsonSchema]]:
        schemas = self.document["components"]["schemas"]
        bodies = [
            (route.method, schemas[route.operation.body.__name__]) for route in routes if route.operation.body
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

    def tables(self, section: Section, routes: list[Route]) -> Iterator[View]:
        bodies = self._bodies(routes)
        declared = [route.operation.body().fields for route in routes if route.operation.body]
        examples = {name: field.metadata["examples"] for fields in declared for name, field in fields.items()}
        rows: list[View] = []
        names = dict.fromkeys(name for _, body in bodies for name in body["properties"])
        for name in sorted(names, key=lambda name: "required" not in self._needed(name, bodies)):
            schema = next(body["properties"][name] for _, body in bodies if name in body["properties"])
            with_example = schema | {"examples": examples[name]}  # a reference has none
            rows += [
                self.row(name, with_example, needed=self._needed(name, bodies)),
                *self._inner_rows(name, schema),
            ]
        if rows:
            yield {"title": "Members of the body", "rows": rows}
        for title, path in section.tables.items():
            name, *inner = path.split(".")
            schema = self.document["components"]["schemas"][name]
            for member in inner:
                schema = self.resolve(schema["properties"][member]) | {"required": []}
            yield {"title": title, "rows": self._rows(schema)}

    # --- operations

    def operation(self, route: Route) -> View:
        entry = self.document["paths"][route.path][route.method.lower()]
        content = entry.get("requestBody", {}).get("content", {}).get("application/json", {})
        success = entry["responses"]["200"]["content"].get("application/json", {}).get("example")
        success = json.dumps(_without_repetitions(success, self.shown), indent=2) if success else ""
        parameters = [
            self.row(
                parameter["name"],
                parameter["schema"]
                | {key: parameter[key] for key in ("description", "x-default") if key in parameter},
                parameter["in"],
                "required" * parameter.get("required", False),
            )
            for parameter in map(self.resolve, entry.get("parameters", []))
        ]
        json_path = route.path.removesuffix(".csv") if route.path.endswith(".csv") else ""
        query = route.operation.query
        shared = [
            row["name"]
            for row in parameters
            if row["place"] == "header" or query.get(row["name"]) in _SHARED_PARAMETERS
        ]
        security = entry["security"]
        return {
            "id": entry["operationId"].replace(".", "_"),
            "method": route.method,
            "path": route.path,
            "keyed": bool(security),
            "scope": security[0]["key"][0] if security else "",
            "summary": route.operation.summary,
            "description": prose(route.operation.description),
            "parameters": parameters,
            "own": [row for row in parameters if row["name"] not in shared and not json_path],
            "json_path": json_path,  # of the operation with the same parameters as this one of a CSV
            "shared": shared,  # names of parameters that the conventions describe
            "members": list(self.resolve(content["schema"])["properties"]) if content else [],
            "is_upload": route.operation.is_upload,
            "body": _code(json.dumps(content["example"], indent=2) if content else ""),
            "curl": _code(self.curl(route, entry)),
            "success": _code(success.replace(f'"{_SHOWN}"', _SHOWN)),
            "errors": [
                code for group in by_status(codes_of(route)).values() for code in group if code not in SHARED
            ],
        }

    def curl(self, route: Route, entry: JsonSchema) -> str:
        stated = route.operation
        schemas = {name: parameter.json for name, parameter in stated.path.items()}
        choices = {name: (schema.get("enum") or schema["examples"])[0] for name, schema in schemas.items()}
        path = re.sub(r"{(\w+)}", lambda match: choices.get(match[1], _ID), route.path)
        url = self.document["servers"][0]["url"] + path
        if stated.example_query:
            url += "?" + urlencode(stated.example_query, quote_via=quote, safe=":,/")
        words = [["-X", route.method]] if route.method != "GET" else []
        words += [["-H", "Authorization: Bearer API_KEY"]] if entry["security"] else []
        if stated.body:
            words += [["-H", "Content-Type: application/json"], ["-d", json.dumps(stated.body_example)]]
        words += [["-F", "file=@links.csv"]] if stated.is_upload else []
        words += [["--output", "export.zip"]] if stated.file and not stated.file_example else []
        return " \\\n  ".join([f"curl {shlex.quote(url)}", *map(shlex.join, words)])

    def sections(self) -> Iterator[View]:
        for section, routes in self.contents:
            self.shown.clear()
            yield {
                "name": section.title,
                "anchor": section.title.lower().replace(" ", "-"),
                "description": prose(section.description),
                "tables": list(self.tables(section, routes)),
                "operations": [self.operation(route) for route in routes],
            }
