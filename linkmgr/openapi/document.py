"""Builder of the OpenAPI document."""

import re
from collections import defaultdict
from collections.abc import Container, Iterator
from typing import Any

from flask import Flask
from werkzeug.routing import Rule

from linkmgr.fields.problems import CODES
from linkmgr.openapi import responses, usual
from linkmgr.openapi.model import Access, Operation, Section, prose
from linkmgr.openapi.operations import OPERATIONS, RECORDS, SECTIONS
from linkmgr.openapi.schemas import ID, JsonSchema, body_of, record, ref, text, with_nested
from linkmgr.repository.channels import ITEMS
from linkmgr.repository.idempotency import MAX_BYTES, MAX_NUMBER
from linkmgr.repository.visits import MAX_LABELS, OTHER
from linkmgr.request import scopes
from linkmgr.request.request import operations
from linkmgr.resources.webhooks import TYPES
from linkmgr.settings import RELEASE
from linkmgr.web import conditional_writes, idempotency

_TITLES = {"bio": "bio page", "qr": "QR code", "splash": "splash page"}  # of parameters whose name differs
PAGES = ("docs.page",)  # endpoints under /api that are not operations


def _parameter(place: str, name: str, about: str, schema: JsonSchema, **others: Any) -> JsonSchema:
    return {"name": name, "in": place, "description": about, "schema": schema, **others}


_CURRENT = "The ETag of the response that you have. If it is current, the response is a 304 without a body."
_IF_NONE_MATCH = _parameter("header", "If-None-Match", _CURRENT, {"type": "string"})
_REPEATABLE = "Makes the request safe to repeat: a new random value, such as a UUID."
_UUID = text("8e03978e-40d5-43dd-bc93-6894a57f9324", maxLength=idempotency.MAX_LENGTH, pattern=idempotency.PATTERN)
_UNCHANGED = "The ETag that you have read. If the record has changed since, nothing is changed."
_ETAG = text('"4711-5d41402abc4b2a76"', pattern=conditional_writes.PATTERN)
# The headers of writes, by the methods that have them
_HEADERS: tuple[tuple[JsonSchema, Container[str]], ...] = (
    (_parameter("header", idempotency.HEADER, _REPEATABLE, _UUID), conditional_writes.METHODS),
    (_parameter("header", conditional_writes.HEADER, _UNCHANGED, _ETAG), conditional_writes.CHANGES),
)


def _body(operation: Operation) -> JsonSchema:
    assert operation.body
    content: JsonSchema = {"schema": ref(operation.body.__name__), "example": operation.example}
    required = any(field.required for field in operation.body().fields.values())
    # Generators that know one type of content take the first: files are what JSON cannot be.
    return {"required": required, "content": {**operation.also, "application/json": content}}


def path_of(rule: Rule) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


def rules(app: Flask) -> dict[tuple[str, str], Rule]:
    """Return the route of each operation by its method and path."""
    return {(method, path_of(rule)): rule for method, rule in operations(app) if rule.endpoint not in PAGES}


def _path_parameters(operation: Operation) -> Iterator[JsonSchema]:
    for name in operation.arguments:
        schema = {"type": "string", "enum": list(ITEMS)} if name == "type" else ID
        kind = name.removesuffix("_id")
        about = "The kind of the item." if name == "type" else f"The id of the {_TITLES.get(kind, kind)}."
        yield _parameter("path", name, about, schema, required=True)


def _query_parameters(operation: Operation) -> Iterator[JsonSchema]:
    for name, parameter in operation.query.items():
        is_array, shown = parameter.json["type"] == "array", operation.shown.get(name)
        separated = {"style": "form", "explode": False} if is_array else {}
        example = {"example": shown.split(",") if is_array else shown} if shown else {}
        yield _parameter("query", name, parameter.about, parameter.json, **separated, **example)


# Names as authors of clients expect them, by blueprint and by the names of view functions.
_CLIENTS = {"urls": "links", "default_key": "keys", "openapi": "document"}
_METHODS = {
    "index": "list", "add": "create", "read": "get", "urls.visits": "listVisits", "qr.visits": "listVisits",
    "overlay.answers": "listAnswers", "stats.read": "query", "webhooks.rotate": "rotateSecret",
    "webhooks.deliveries": "listDeliveries", "webhooks.events": "listEvents", "imports.errors": "listErrors",
    "users.login_link": "createLoginLink", "openapi.document": "get", "export.urls": "links",
}  # fmt: skip


def _operation_id(routes: dict[tuple[str, str], Rule], operation: Operation) -> str:
    """Return a name such as `links.create`."""
    rule = routes[operation.method, operation.path]
    blueprint, view = rule.endpoint.split(".")
    first, *others = view.split("_")
    name = _METHODS.get(rule.endpoint) or _METHODS.get(view) or first + "".join(word.title() for word in others)
    suffix = "ByPost" if (rule.endpoint, operation.method) == ("account.read", "POST") else ""
    return f"{_CLIENTS.get(blueprint, blueprint)}.{name}{suffix}"


def _with_formats(schema: Any) -> Any:
    """Return a part of the document whose integers have 64 bits, but for `limit` and `page`, which are clamped."""
    match schema:
        case dict():
            is_long = "integer" in schema.get("type", ()) and schema.keys().isdisjoint({"enum", "default"})
            return {name: _with_formats(value) for name, value in schema.items()} | (
                {"format": "int64"} if is_long else {}
            )
        case list() | tuple():
            return [_with_formats(value) for value in schema]
        case _:
            return schema


def _payload_name(event: str) -> str:
    """Return the name of the schema of what receivers of webhooks get."""
    kinds = {"link": "Link", "import": "Import", **{kind.path: kind.__name__ for kind in usual.KINDS}}
    kind, _, change = event.partition(".")
    return f"{kinds[kind]}Event" if kind in kinds and change in ("created", "updated", "finished") else "OtherEvent"


def _payloads() -> JsonSchema:
    """Return the schemas of events. Named ones, because generators make classes of them."""
    time = text("2026-11-21T09:30:00Z", format="date-time")
    return {
        name: record(type=text(event), timestamp=time, data=ref(kind) if kind in RECORDS else {"type": "object"})
        for event in TYPES
        for name in [_payload_name(event)]
        for kind in [name.removesuffix("Event")]
    }


def _events() -> JsonSchema:
    """Return the section `webhooks`: what receivers get, by the type of the event."""
    return {
        name: {
            "post": {
                "operationId": f"receive.{name}",
                "summary": f"An event {name}",
                "requestBody": {"content": {"application/json": {"schema": ref(_payload_name(name))}}},
                "responses": {"2XX": {"description": "Received. Other responses cause another delivery."}},
            }
        }
        for name in TYPES
    }


def _entry(section: Section, operation: Operation, operation_id: str, rule: Rule) -> JsonSchema:
    headers = [
        ref(header["name"], "parameters")
        for header, methods in _HEADERS
        if operation.method in methods and not (operation.many and header["name"] == conditional_writes.HEADER)
    ]
    headers += [_IF_NONE_MATCH] if operation.conditional else []
    is_public = operation.access is Access.PUBLIC
    parameters = [*_path_parameters(operation), *_query_parameters(operation), *headers]
    return {
        "operationId": operation_id,
        "summary": operation.summary,
        **({"description": operation.description} if operation.description else {}),
        "tags": [section.name],
        **({"parameters": parameters} if parameters else {}),
        **({"requestBody": _body(operation)} if operation.body else {}),
        "security": [] if is_public else [{"key": [scopes.of(rule.endpoint, operation.method, rule.rule)]}],
        "responses": responses.of(operation),
    }


def _links(section: Section, ids: dict[Operation, str]) -> JsonSchema:
    """Return the OpenAPI links from a create to the operations whose only argument is its id."""
    source = "$response.body#/data/id" if section.name == "Users" else "$response.body#/id"
    return {
        ids[operation]: {"operationId": ids[operation], "parameters": dict.fromkeys(operation.arguments, source)}
        for operation in section.operations
        if len(operation.arguments) == 1
    }


def _paths(app: Flask) -> JsonSchema:
    routes, paths = rules(app), defaultdict[str, JsonSchema](dict)
    for section in SECTIONS:
        ids = {operation: _operation_id(routes, operation) for operation in section.operations}
        for operation, operation_id in ids.items():
            entry = _entry(section, operation, operation_id, routes[operation.method, operation.path])
            if operation.path.endswith("/add"):
                entry["responses"]["200"]["links"] = _links(section, ids)
            paths[operation.path][operation.method.lower()] = entry
    return dict(paths)


def _schemas() -> JsonSchema:
    """Return all schemas. Their order is the same in all processes, which have the same ETag."""
    bodies = [schema for operation in OPERATIONS if operation.body for schema in with_nested(operation.body)]
    shapes = {schema.__name__: body_of(schema) for schema in dict.fromkeys(bodies)}
    return RECORDS | _payloads() | responses.errors() | shapes


def _introduction() -> str:
    problems = ", ".join(f"`{code}` ({about})" for code, about in CODES.items())
    limits = {"MAX_NUMBER": MAX_NUMBER, "MAX_MIB": MAX_BYTES >> 20, "MAX_LABELS": MAX_LABELS}
    return prose("introduction", **limits, OTHER=OTHER, PROBLEMS=problems)


def build(app: Flask, base_url: str) -> JsonSchema:
    about = "An API key. The names listed with it are scopes: a key created with POST /api/key/add needs them."
    document: JsonSchema = _with_formats(
        {
            "openapi": "3.1.0",
            "info": {"title": "linkmgr", "version": RELEASE, "description": _introduction()},
            "servers": [{"url": base_url}],
            "security": [{"key": []}],
            "tags": [{"name": section.name, "description": section.description} for section in SECTIONS],
            "paths": _paths(app),
            "webhooks": _events(),
            "components": {
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": about}},
                "headers": responses.headers(),
                "parameters": {header["name"]: header for header, _ in _HEADERS},
                "responses": responses.shared(),
                "schemas": _schemas(),
            },
        }
    )
    return document
