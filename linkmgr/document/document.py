from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from flask import Flask

from linkmgr.core import feature
from linkmgr.core.database.paging import MAX_BYTES as MAX_PAGE
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.problems import CODES
from linkmgr.core.fields.query import Parameter
from linkmgr.core.fields.shapes import ANY_OBJECT, ID, RECORDS, object_of, ref, text, with_actor
from linkmgr.core.settings import RELEASE
from linkmgr.core.web import idempotency, writes
from linkmgr.core.web.idempotency_store import MAX_BYTES, MAX_NUMBER
from linkmgr.core.web.operation import Operation, Route, Section, prose, routes
from linkmgr.core.web.outbound_budget import PAGES_PER_HOUR, PER_HOUR
from linkmgr.core.web.pool import MANY_ROWS
from linkmgr.core.web.scopes import PUBLIC
from linkmgr.core.web.streams import LARGE
from linkmgr.document import enumerations, objects, responses
from linkmgr.document.responses import is_cacheable, is_conditional
from linkmgr.document.schemas import body_of, with_nested
from linkmgr.visits.dimensions import OTHER
from linkmgr.visits.store import MAX_LABELS

_PROBLEMS = ", ".join(f"`{code}` ({about})" for code, about in CODES.items())
_LIMITS = {
    "MAX_NUMBER": MAX_NUMBER,
    "MAX_MIB": MAX_BYTES >> 20,
    "MAX_LABELS": MAX_LABELS,
    "MANY_ROWS": MANY_ROWS,
}
_LIMITS |= {"PER_HOUR": PER_HOUR, "PAGES_PER_HOUR": PAGES_PER_HOUR}
_LIMITS |= {"PAGE_MIB": MAX_PAGE >> 20, "LARGE_MIB": LARGE >> 20}
INTRODUCTION = prose(__file__, **_LIMITS, OTHER=OTHER, PROBLEMS=_PROBLEMS)  # read when a worker starts


def _parameter(place: str, name: str, about: str, schema: JsonSchema, **others: Any) -> JsonSchema:
    return {"name": name, "in": place, "description": about, "schema": schema, **others}


_CURRENT = "The ETag of the response that you have. If it is current, the response is a 304 without a body."
_IF_NONE_MATCH = _parameter("header", "If-None-Match", _CURRENT, {"type": "string"})
_REPEATABLE = "Makes the request safe to repeat: a new random value, such as a UUID."
_UUID = text("8e03978e-40d5-43dd-bc93-6894a57f9324", maxLength=idempotency.MAX_LENGTH)
_UNCHANGED = "The ETag that you have read. If the record has changed since, nothing is changed."
_ETAG = text('"4711-5d41402abc4b2a76"')
_MAX_NUMBER = 2**53  # that every JSON parser reads exactly
_DOCUMENT = Section(
    "document",
    "This document",
    "The description of the API in the form of OpenAPI, which generators of clients read.",
)
Contents = list[tuple[Section, list[Route]]]
# Parameters by operation in the last release, in the order of the arguments of generated clients
RELEASED = {
    words[0]: words[1:]
    for words in map(str.split, Path(__file__).with_name("released.txt").read_text().splitlines())
}


def contents_of(app: Flask) -> Contents:
    stated, all_routes = (*feature.sections(), _DOCUMENT), routes(app)
    return [
        (section, [route for route in all_routes if route.operation.id.partition(".")[0] == section.word])
        for section in stated
    ]


def pages_of(contents: Contents) -> Contents:
    """Return the sections and operations of each page of /api/docs."""
    pages: Contents = []
    for section, section_routes in contents:
        apart = [route for route in section_routes if section.apart and route.operation.apart]
        pages.append((section, [route for route in section_routes if route not in apart]))
        if section.apart:
            pages.append((section.apart, apart))
    return pages


def _description(section: Section) -> str:
    return f"{section.description}\n\n{section.apart.description}" if section.apart else section.description


def _in_query(name: str, parameter: Parameter, value: str | None = None) -> JsonSchema:
    is_array = parameter.json["type"] == "array"
    separated = {"style": "form", "explode": False} if is_array else {}
    example = {"example": value.split(",") if is_array else value} if value else {}
    return _parameter("query", name, parameter.about, parameter.json, **separated, **example)


_SHARED: tuple[JsonSchema, ...] = (
    _parameter("header", idempotency.HEADER, _REPEATABLE, _UUID),
    _parameter("header", writes.HEADER, _UNCHANGED, _ETAG),
)


def _body(stated: Operation) -> JsonSchema:
    if stated.body is None:
        return {"required": True, "content": stated.media}
    content: JsonSchema = {"schema": ref(stated.body.__name__), "example": stated.body_example}
    required = any(field.required for field in stated.body().fields.values())
    return {"required": required, "content": {"application/json": content}}


def _name(parameter: JsonSchema) -> str:
    return str(parameter.get("name") or parameter["$ref"].rpartition("/")[2])


def _ordered(parameters: Iterable[JsonSchema], operation_id: str) -> list[JsonSchema]:
    """Return new parameters behind those of the last release."""
    places = {name: place for place, name in enumerate(RELEASED.get(operation_id, []))}
    return sorted(parameters, key=lambda parameter: places.get(_name(parameter), len(places)))


def _parameters(route: Route, nouns: dict[str, str]) -> Iterator[JsonSchema]:
    stated = route.operation
    for name in route.arguments:
        if name in stated.path:
            yield _parameter("path", name, stated.path[name].about, stated.path[name].json, required=True)
        else:
            noun = name.removesuffix("_id")
            yield _parameter("path", name, f"The id of the {nouns.get(noun, noun)}.", ID, required=True)
    documented = {name: parameter for name, parameter in stated.query.items() if not parameter.selects_media}
    for name, parameter in documented.items():
        yield _in_query(name, parameter, stated.example_query.get(name))
    if route.method in writes.METHODS:
        yield ref(idempotency.HEADER, "parameters")
    if is_conditional(route):
        yield ref(writes.HEADER, "parameters")
    if is_cacheable(route):
        yield _IF_NONE_MATCH


def _with_formats(schema: Any) -> Any:
    """Return a part of the document whose integers have 64 bits, but for `limit` and `page`, which
    are clamped. The format stands for a maximum that parsers cannot read."""
    match schema:
        case {"maximum": int(maximum), **others} if maximum > _MAX_NUMBER:
            return _with_formats(others)
        case dict():
            is_long = "integer" in schema.get("type", ()) and schema.keys().isdisjoint({"enum", "default"})
            return {name: _with_formats(value) for name, value in schema.items()} | (
                {"format": "int64"} if is_long else {}
            )
        case list() | tuple():
            return [_with_formats(value) for value in schema]
        case _:
            return schema


def _payload_name(record_name: str) -> str:
    return f"{record_name or 'Other'}Event"


def _payloads(events: dict[str, str]) -> JsonSchema:
    """Return the schemas of events. Named ones, because generators make classes of them."""
    time = text("2026-11-21T09:30:00Z", format="date-time")
    return {
        _payload_name(name): with_actor(
            object_of(type=text(event), timestamp=time, data=ref(name) if name else ANY_OBJECT)
        )
        for event, name in events.items()
    }


def _webhooks(contents: Contents) -> JsonSchema:
    """Return the requests that the service sends. Generators leave out `x-internal` ones, of which
    they would make requests that clients send, and keep their types."""
    return {
        event: {
            "post": {
                "operationId": f"receive.{event}",
                "summary": f"An event {event}",
                "tags": [section.title],
                "x-internal": True,
                "requestBody": {"content": {"application/json": {"schema": ref(_payload_name(name))}}},
                "responses": {"2XX": {"description": "Received. Other responses cause another delivery."}},
            }
        }
        for section, _ in contents
        for event, name in section.events.items()
    }


def _entry(
    section: Section, route: Route, nouns: dict[str, str], records: dict[str, JsonSchema]
) -> JsonSchema:
    stated, parameters = route.operation, _ordered(_parameters(route, nouns), route.operation.id)
    return {
        "operationId": stated.id,
        "summary": stated.summary,
        **({"description": stated.description} if stated.description else {}),
        "tags": [section.title],
        **({"parameters": parameters} if parameters else {}),
        **({"requestBody": _body(stated)} if stated.body or stated.media else {}),
        "security": [] if stated.scope == PUBLIC else [{"key": [stated.scope]}],
        "responses": responses.of(route, records),
    }


def _links(create: Route, section_routes: list[Route]) -> JsonSchema:
    has_id = "id" in create.operation.response["properties"]
    source = f"$response.body#/{'id' if has_id else 'data/id'}"
    return {
        route.operation.id: {
            "operationId": route.operation.id,
            "parameters": dict.fromkeys(route.arguments, source),
        }
        for route in section_routes
        if len(route.arguments) == 1 and not route.operation.path
    }


def _paths(contents: Contents, records: dict[str, JsonSchema]) -> JsonSchema:
    paths = defaultdict[str, JsonSchema](dict)
    nouns = {name: noun for section, _ in contents for name, noun in section.nouns.items()}
    for section, section_routes in contents:
        for route in section_routes:
            entry = _entry(section, route, nouns, records)
            if route.path.endswith("/add"):
                entry["responses"]["200"]["links"] = _links(route, section_routes)
            paths[route.path][route.method.lower()] = entry
    return dict(paths)


def _schemas(contents: Contents, records: dict[str, JsonSchema], events: dict[str, str]) -> JsonSchema:
    """Return all schemas. Their order is the same in all processes, which have the same ETag."""
    all_routes = [route for _, section_routes in contents for route in section_routes]
    bodies = [
        nested for route in all_routes if route.operation.body for nested in with_nested(route.operation.body)
    ]
    shapes = {schema.__name__: body_of(schema) for schema in dict.fromkeys(bodies)}
    return records | _payloads(events) | responses.errors(all_routes) | shapes


def build(app: Flask, base_url: str) -> JsonSchema:
    contents = contents_of(app)
    records = RECORDS | feature.records()
    events = {event: name for section, _ in contents for event, name in section.events.items()}
    about = (
        "An API key. The names listed with it are scopes: a key created with POST /api/key/add needs them."
    )
    subject = INTRODUCTION.partition("\n\n")[0]
    reference = (
        f"The [reference]({base_url}/api/docs) describes authentication, lists, errors, retries and limits."
    )
    document: JsonSchema = _with_formats(
        {
            "openapi": "3.1.0",
            "info": {"title": "linkmgr", "version": RELEASE, "description": f"{subject} {reference}"},
            "servers": [{"url": base_url}],
            "security": [{"key": []}],
            "tags": [
                {"name": section.title, "description": _description(section)} for section, _ in contents
            ],
            "paths": _paths(contents, records),
            "webhooks": _webhooks(contents),
            "components": {
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": about}},
                "headers": responses.headers(),
                "parameters": {shared["name"]: shared for shared in _SHARED},
                "responses": responses.shared(),
                "schemas": _schemas(contents, records, events),
            },
        }
    )
    objects.extract(document)
    enumerations.extract(document)
    return document
