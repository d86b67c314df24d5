"""The OpenAPI document.  tests/conftest.py compares every answer that a test gets with it."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from marshmallow import Schema
from openapi_spec_validator import validate

from linkmgr.api.channels import Assignment
from linkmgr.db import statements
from linkmgr.fields import base
from linkmgr.openapi.document import PAGES
from linkmgr.openapi.examples import EXAMPLES
from linkmgr.openapi.operations import OPERATIONS
from linkmgr.web.errors import CATALOGUE
from tests.conftest import BASE_URL, ROOT, Client
from tests.contract import Operation
from tests.document import document, validator, validator_of
from tests.operations import OPERATIONS as CONTRACT
from tests.test_contract import Stage, bodies

# What the pages and the command line refuse, and what is said before there is an operation.
NOT_OF_OPERATIONS = {
    "headers_too_large", "request_timeout", "expectation_failed", "not_implemented", "redirect_loop", "unknown_host",
    "metrics_token", "no_such_page", "method_not_allowed", "plan_name_taken", "image_missing",
    "campaign_missing", "answer_unplaced", "answers_full", "too_many_answers", "link_spent", "sign_in_failed",
    "too_many_sign_ins", "too_many_for_account", "password_wrong", "foreign_origin", "link_password_wrong",
}  # fmt: skip

OPERATIONS_OF_DOCUMENT = [
    pytest.param(path, method, operation, id=operation["operationId"])
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
]
over_operations = pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS_OF_DOCUMENT)


def test_it_is_valid() -> None:
    validate(document())
    assert document()["openapi"].startswith("3.1")


def test_it_has_every_operation_of_the_route_table(app: Flask) -> None:
    endpoints = {rule.endpoint for rule in app.url_map.iter_rules() if rule.rule.startswith("/api")}
    assert endpoints - set(PAGES) == set(OPERATIONS)


@over_operations
def test_an_operation_tells_all_that_a_program_must_know(path: str, method: str, operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert operation["tags"]
    assert {"200", "400", "429", "500", "503"} <= set(operation["responses"])
    assert ("401" in operation["responses"]) == (operation.get("security") != [])
    assert ("404" in operation["responses"]) == ("{" in path)
    assert ("415" in operation["responses"]) == ("requestBody" in operation) == (method in ("post", "put") and (
        "assign" not in path and path != "/api/account"
    ))  # fmt: skip
    for status, response in operation["responses"].items():
        shared = response.get("$ref", "").rpartition("/")[2]
        headers = set((document()["components"]["responses"][shared] if shared else response)["headers"]) - {"ETag"}
        expected = {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id"}
        assert headers == expected | ({"Retry-After"} if status in ("429", "503") else set())


def test_every_refusal_of_the_api_is_in_it() -> None:
    written = json.dumps(document())
    assert {code for code in CATALOGUE if f'"{code}"' not in written} == NOT_OF_OPERATIONS


def test_it_is_read_without_a_key_and_only_once(anonymous: Client, make_app: Callable[..., Flask]) -> None:
    answer = anonymous.http.get("/api/openapi.json")
    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    assert answer.get_json()["servers"] == [{"url": BASE_URL}]
    assert answer.headers["X-RateLimit-Remaining"].isdigit()
    again = anonymous.http.get("/api/openapi.json", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    documented = answer.get_json()["paths"]["/api/openapi.json"]["get"]["responses"]
    assert "ETag" in documented["200"]["headers"]
    assert "ETag" in documented["304"]["headers"]
    assert again.headers["X-RateLimit-Remaining"].isdigit()
    public = "https://go.example.org"
    elsewhere = make_app(base_url=public).test_client().get(f"{public}/api/openapi.json").get_json()
    assert elsewhere["servers"] == [{"url": public}]


def test_it_is_counted_by_the_address(app: Flask, make_app: Callable[..., Flask], alice: Client) -> None:
    limited = make_app(rate_limit="2 per minute").test_client()
    assert [limited.get("/api/openapi.json").status_code for _ in range(3)] == [200, 200, 429]


def test_it_does_not_hold_up_the_start() -> None:
    script = "import sys, app; sys.exit('apispec' in sys.modules)"
    environment = {"LINKMGR_SECRET_KEY": "unused" * 6, "LINKMGR_DATABASE_URL": "postgresql://unused"}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, check=True)


# --- bodies


@pytest.fixture
def read_by(monkeypatch: pytest.MonkeyPatch) -> list[type[Schema]]:
    """The schemas of the bodies that are read."""
    found: list[type[Schema]] = []
    checked = base.checked

    def noted(schema: type[Schema], members: dict[str, Any]) -> dict[str, Any]:
        found.append(schema)
        return checked(schema, members)

    monkeypatch.setattr(base, "checked", noted)
    return found


def documented(operation: Operation, app: Flask) -> tuple[str, dict[str, Any]]:
    rule, _ = app.url_map.bind("").match(operation.path.format_map(Ones()), operation.method, return_rule=True)
    return rule.endpoint, OPERATIONS[rule.endpoint].__dict__


class Ones(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return 1


@pytest.fixture
def stage(alice: Client, admin: Client, sql: Callable[..., list[statements.Row]]) -> Stage:
    return Stage(alice, admin, sql)


def body_of(operation: Operation, path: str, app: Flask) -> type[Schema] | None:
    rule, _ = app.url_map.bind("").match(path, operation.method, return_rule=True)
    return OPERATIONS[rule.endpoint].body


@pytest.mark.parametrize("operation", CONTRACT, ids=lambda o: f"{o.method} {o.path}")
def test_the_body_is_what_the_operation_reads(
    app: Flask, stage: Stage, read_by: list[type[Schema]], operation: Operation
) -> None:
    path = stage.path(operation)
    body = body_of(operation, path, app)
    read_by.clear()
    assert stage.caller(operation).call(operation.method, path, bodies(operation)[-1]).status_code == 200
    assert [schema for schema in read_by if schema is not Assignment] == ([body] if body else [])
    if body:
        for sent in bodies(operation):
            validator(body.__name__).validate(sent)
        assert not operation.wrong or not validator(body.__name__).is_valid(operation.body | operation.wrong)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_can_be_sent(app: Flask, name: str) -> None:
    [schema] = {o.body for o in OPERATIONS.values() if o.body and o.body.__name__ == name}
    validator(name).validate(EXAMPLES[name])
    with app.app_context():
        base.checked(schema, EXAMPLES[name])


def test_every_body_has_an_example() -> None:
    assert {o.body.__name__ for o in OPERATIONS.values() if o.body} == set(EXAMPLES)


@over_operations
def test_an_example_is_an_answer(path: str, method: str, operation: dict[str, Any]) -> None:
    content = operation["responses"]["200"]["content"]["application/json"]
    assert "example" in content or operation["operationId"] == "openapi_document"
    validator_of(content["schema"]).validate(content.get("example", {}))
