"""Builds the OpenAPI document, once a process."""

import re
from collections.abc import Iterator

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask
from marshmallow import Schema
from werkzeug.routing import Rule

from linkmgr.openapi import examples, responses, types
from linkmgr.openapi.operations import OPERATIONS, Operation
from linkmgr.openapi.schemas import ID, SHAPES, JsonSchema
from linkmgr.repository.channels import ITEMS
from linkmgr.web.auth import ADMINISTRATION, PUBLIC_BLUEPRINTS

VERSION = "3"  # as the specification calls itself (section 9)
PAGES = ("docs.page",)  # stand under /api and are no operations

_DESCRIPTION = """\
Manages short links, QR codes, bio pages, campaigns, channels, branded domains, splash pages, overlays and pixels.

Send the API key of your account page with every request. A success is 200 with `error` 0; a refusal has `error` 1,
a sentence in `message`, and a `code` for programs, which stays as it is.

In bodies `null` means not sent, and members that are not named here are ignored. On create `""` means not sent too; on
update it empties an optional text."""
_TAGS = {
    "account": "Account",
    "urls": "Links",
    "bio": "Bio pages",
    "domains": "Branded domains",
    "splash": "Splash pages",
    "overlay": "CTA overlays",
    "pixels": "Pixels",
    "qr": "QR codes",
    "campaigns": "Campaigns",
    "channels": "Channels",
    "plans": "Plans",
    "users": "Users",
    "openapi": "This document",
}


def _name(schema: type[Schema] | Schema) -> str:
    kind = schema if isinstance(schema, type) else type(schema)
    return kind.__name__


def _body(schema: type[Schema]) -> JsonSchema:
    content: JsonSchema = {"schema": schema}
    if example := examples.EXAMPLES.get(_name(schema)):
        content["example"] = example
    required = any(field.required for field in schema().fields.values())
    return {"required": required, "content": {"application/json": content}}


def path_of(rule: Rule) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


def _in_path(rule: Rule) -> Iterator[JsonSchema]:
    for converter, name in re.findall(r"<(?:(\w+):)?(\w+)>", rule.rule):
        schema = ID if converter == "id" else {"type": "string", "enum": list(ITEMS)}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _operation_id(endpoint: str, method: str) -> str:
    """The endpoint; the same one by another method has it in its name."""
    return endpoint.replace(".", "_") + ("_by_post" if (endpoint, method) == ("account.read", "POST") else "")


def _operation(rule: Rule, method: str, documented: Operation) -> JsonSchema:
    blueprint = rule.endpoint.partition(".")[0]
    parameters = [*_in_path(rule), *documented.query]
    return {
        "operationId": _operation_id(rule.endpoint, method),
        "summary": documented.summary,
        "tags": [_TAGS[blueprint]],
        **({"parameters": parameters} if parameters else {}),
        **({"requestBody": _body(documented.body)} if documented.body else {}),
        **({"security": []} if blueprint in PUBLIC_BLUEPRINTS else {}),
        "responses": responses.of(
            documented,
            keyed=blueprint not in PUBLIC_BLUEPRINTS,
            administration=blueprint in ADMINISTRATION,
            in_path=bool(rule.arguments),
            checked=bool(documented.query or "type" in rule.arguments),
        ),
    }


def _links(added: Rule, rules: list[Rule]) -> JsonSchema:
    """From what adds a row to the operations that take its id alone."""
    blueprint = added.endpoint.partition(".")[0]
    taken_from = "$response.body#/data/id" if blueprint == "users" else "$response.body#/id"
    return {
        _operation_id(rule.endpoint, ""): {
            "operationId": _operation_id(rule.endpoint, ""),
            "parameters": dict.fromkeys(rule.arguments, taken_from),
        }
        for rule in rules
        if rule.endpoint.startswith(f"{blueprint}.") and len(rule.arguments) == 1
    }


def _rules(app: Flask) -> Iterator[Rule]:
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith("/api/") and rule.endpoint not in PAGES:
            yield rule


def _empty(base_url: str) -> APISpec:
    """A document without operations."""
    plugin = MarshmallowPlugin(schema_name_resolver=_name)
    spec = APISpec(
        "linkmgr",
        VERSION,
        "3.1.0",
        [plugin],
        info={"description": _DESCRIPTION},
        servers=[{"url": base_url}],
        security=[{"key": []}],
        tags=[{"name": name} for name in _TAGS.values()],
    )
    assert plugin.converter
    plugin.converter.add_attribute_function(types.property_of)  # type: ignore[no-untyped-call]
    spec.components.security_scheme("key", {"type": "http", "scheme": "bearer"})
    return spec


def build(app: Flask, base_url: str) -> JsonSchema:
    spec = _empty(base_url)
    responses.add_components(spec.components)
    for name, shape in SHAPES.items():
        spec.components.schema(name, shape)
    rules = sorted(_rules(app), key=lambda rule: "GET" not in (rule.methods or ()))  # what only reads comes first
    for rule in rules:
        methods = sorted((rule.methods or set()) - {"HEAD"})
        found = {method.lower(): _operation(rule, method, OPERATIONS[rule.endpoint]) for method in methods}
        if rule.endpoint.endswith(".add"):
            found["post"]["responses"]["200"]["links"] = _links(rule, rules)
        spec.path(path_of(rule), operations=found)
    return dict(spec.to_dict())
