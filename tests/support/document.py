"""The OpenAPI document, and the check that it describes a response."""

import json
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs
from flask import Flask
from werkzeug.exceptions import HTTPException
from werkzeug.test import TestResponse

from linkmgr import create_app
from linkmgr.core.web.operation import Route
from linkmgr.document.document import Contents, build, contents_of

FILES = ("application/zip", "application/x-ndjson", "text/csv")
BASE_URL = "http://127.0.0.1:5000"
ELSEWHERE = (
    "no_such_operation",
    "unknown_host",
    "bad_request",
)  # errors of paths and hosts, raised before an operation is selected


@cache
def app() -> Flask:
    """The service, used for its route table only."""
    return create_app(secret_key="unused" * 6, database_url="postgresql://unused")


@cache
def document() -> dict[str, Any]:
    with app().app_context():
        return build(app(), BASE_URL)


@cache
def contents() -> Contents:
    """Return the sections of the document with their operations."""
    with app().app_context():
        return contents_of(app())


@cache
def operations() -> list[Route]:
    """Return all operations in the order of the document."""
    return [route for _, routes in contents() for route in routes]


def parameters() -> Iterator[str]:
    """Yield the lines of linkmgr/document/released.txt for this document."""
    for methods in document()["paths"].values():
        for operation in methods.values():
            stated = operation.get("parameters", ())
            names = [parameter.get("name") or parameter["$ref"].rpartition("/")[2] for parameter in stated]
            if names:
                yield " ".join([operation["operationId"], *names])


@cache
def validator(name: str) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of a named schema of the document."""
    return validator_of({"$ref": f"#/components/schemas/{name}"})


def _strict(schema: Any) -> Any:
    """Return a schema of responses that allows no other members and values, so that tests find those that are not
    documented."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: _strict(value) for name, value in schema.items()}
    if known := schema.get("x-known-values"):
        return inner | {"enum": [*known, None]}
    is_object = schema.get("type") == "object" and "properties" in schema
    return {"additionalProperties": False} | inner if is_object else inner


@cache
def _strict_schemas() -> dict[str, Any]:
    return {name: _strict(schema) for name, schema in document()["components"]["schemas"].items()}


def validator_of(schema: dict[str, Any], *, strict: bool = False) -> jsonschema_rs.Draft202012Validator:
    return _compiled(json.dumps(schema), strict)


@cache
def _compiled(schema: str, strict: bool) -> jsonschema_rs.Draft202012Validator:
    """Compile each schema once. Hundreds of operations have the same, and the components take long."""
    schemas = _strict_schemas() if strict else document()["components"]["schemas"]
    components = {"components": {"schemas": schemas}} if "$ref" in schema else {}
    return jsonschema_rs.Draft202012Validator(json.loads(schema) | components, validate_formats=True)


@cache
def property_validators(name: str) -> dict[str, jsonschema_rs.Draft202012Validator]:
    """Return a validator for each member of a named schema."""
    return {
        member: validator_of(schema)
        for member, schema in document()["components"]["schemas"][name]["properties"].items()
    }


def _described(path: str, method: str, status: int) -> dict[str, Any]:
    response: dict[str, Any] = document()["paths"][path][method.lower()]["responses"][str(status)]
    if "$ref" in response:
        response = document()["components"]["responses"][response["$ref"].rpartition("/")[2]]
    return response


@cache
def _answers(path: str, method: str, status: int, mimetype: str) -> jsonschema_rs.Draft202012Validator:
    schema = _described(path, method, status)["content"][mimetype]["schema"]
    return validator_of(_strict(schema), strict=True)


@cache
def _path(path: str, method: str) -> str | None:
    """Return the path in the document, or None if there is no such operation."""
    try:
        rule, _ = app().url_map.bind("").match(path, method, return_rule=True)
    except HTTPException:
        return None
    documented = [route.path for route in operations() if route.rule is rule]
    return documented[0] if documented else None


def check(response: TestResponse) -> None:
    """Check that the document describes this response: its operation, ETag, error code and members."""
    method, status = response.request.method, response.status_code
    path = _path(response.request.path, method)
    if path is None or method == "HEAD":
        return
    if response.mimetype in FILES:  # by `Accept` or `format`, also where the document has JSON
        assert status == 200
        return
    contents: Any = response.get_json() if response.is_json else response.text
    if response.is_json and contents.get("code") in ELSEWHERE:
        return
    assert ("ETag" in response.headers) == ("ETag" in _described(path, method, status)["headers"])
    if status >= 400:
        assert f"- `{contents['code']}`" in _described(path, method, status)["description"]
    if status != 304:
        _answers(path, method, status, response.mimetype).validate(contents)


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in parameters())
