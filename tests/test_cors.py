"""Cross-origin requests: preflights, and the headers that let pages of other origins read the API."""

import re
from collections.abc import Callable

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.core.database.statements import Database
from linkmgr.core.web import operation
from tests.conftest import Client
from tests.support import factories
from tests.support.document import app as routes
from tests.support.factories import Sql

ORIGIN = "https://app.example.com"
# The routes of the API, with their methods.
ROUTES: dict[str, set[str]] = {}
for _route in operation.routes(routes()):
    ROUTES.setdefault(_route.path, set()).add(_route.method)
READ = {"authorization", "x-custom"}
EXPOSED = {
    "content-disposition", "www-authenticate",
    "etag", "idempotency-replayed", "link", "ratelimit", "ratelimit-policy", "retry-after", "x-ratelimit-limit",
    "x-ratelimit-remaining", "x-ratelimit-reset", "x-ratelimit-rows-limit", "x-ratelimit-rows-remaining",
    "x-ratelimit-rows-reset", "x-request-id", "linkmgr-version",
}  # fmt: skip


def preflight(app: Flask, path: str, method: str = "POST", **headers: str) -> TestResponse:
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": method}
    asked |= {"Access-Control-Request-Headers": "authorization, x-custom"} | headers
    return app.test_client().open(path, method="OPTIONS", headers=asked)


def names(answer: TestResponse, header: str) -> set[str]:
    return set(answer.headers[header].lower().split(", "))


def check_allowed(answer: TestResponse, methods: set[str]) -> None:
    assert (answer.status_code, answer.data) == (204, b"")
    assert set(answer.headers["Access-Control-Allow-Methods"].split(", ")) == methods
    assert names(answer, "Access-Control-Allow-Headers") == READ
    assert int(answer.headers["Access-Control-Max-Age"]) > 0
    check_readable(answer)


def check_readable(answer: TestResponse) -> None:
    assert answer.headers.getlist("Access-Control-Allow-Origin") == ["*"]
    assert names(answer, "Access-Control-Expose-Headers") == EXPOSED
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_a_preflight_is_answered_with_the_methods_of_the_path(app: Flask) -> None:
    for path, methods in ROUTES.items():
        check_allowed(preflight(app, re.sub("{[a-z]+_id}", "17", path).replace("{type}", "links")), methods)


@pytest.mark.parametrize("path", ["/api", "/api/nothing", "/api/pixel/x", "/api//pixels"])
def test_a_preflight_of_an_unknown_path_allows_all_methods_so_that_the_404_is_read(
    app: Flask, anonymous: Client, path: str
) -> None:
    check_allowed(preflight(app, path, "DELETE"), {"DELETE", "GET", "POST", "PUT"})
    check_readable(anonymous.delete(path))


def test_a_preflight_uses_no_database_and_no_budget(
    app_with: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = app_with(rate_limit="1 per minute")

    def fail(*_: object, **__: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(Database, "execute", fail)
        for _ in range(3):
            assert preflight(limited, "/api/pixel/add").status_code == 204
    assert limited.test_client().get("/api/pixels").headers["X-RateLimit-Remaining"] == "0"
    assert limited.test_client().get("/api/pixels").status_code == 429


@pytest.mark.parametrize("missing", ["Origin", "Access-Control-Request-Method"])
def test_other_options_requests_are_refused_as_before(alice: Client, missing: str) -> None:
    headers = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
    del headers[missing]
    answer = alice.call("OPTIONS", "/api/pixels", headers=headers)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    check_readable(answer)


def test_responses_and_errors_are_readable_by_any_origin(
    alice: Client, anonymous: Client, app_with: Callable[..., Flask], app: Flask
) -> None:
    limited = Client(app_with(rate_limit="1 per minute").test_client())
    limited.get("/api/account", environ_base={"REMOTE_ADDR": "192.0.2.7"})
    lost = Client(app_with(database_url="postgresql://postgres@127.0.0.1:1/linkmgr").test_client(), alice.key)
    answers = {
        200: alice.get("/api/pixels", headers={"Origin": ORIGIN}),
        400: alice.post("/api/pixel/add", {}),
        401: anonymous.get("/api/pixels"),
        403: alice.get("/api/plans"),
        404: alice.get("/api/pixel/1"),
        405: alice.put("/api/pixels", {}),
        413: alice.call("POST", "/api/pixel/add", data=b"x" * (64 * 1024 + 1), content_type="application/json"),
        415: alice.call("POST", "/api/pixel/add", data={"name": "n"}),
        429: limited.get("/api/account", environ_base={"REMOTE_ADDR": "192.0.2.7"}),
        503: lost.get("/api/pixels"),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        check_readable(answer)
    check_readable(app.test_client().get("/api/docs"))
    first = app.test_client().get("/api/openapi.json")
    check_readable(app.test_client().get("/api/openapi.json", headers={"If-None-Match": first.headers["ETag"]}))


@pytest.mark.parametrize("host", ["go.example.org", "unknown.example.org", "192.0.2.1"])
def test_hosts_without_the_api_allow_nothing(app: Flask, alice: Client, sql: Sql, host: str) -> None:
    sql(
        "INSERT INTO domains (user_id, scheme, host) VALUES (%(id)s, 'https', 'go.example.org') RETURNING 1",
        id=alice.id,
    )
    for path in ("/api/pixels", "/api/nothing", "/api"):
        for answer in (preflight(app, path, Host=host), app.test_client().get(path, headers={"Host": host})):
            assert answer.status_code == 404
            assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]


def test_pages_outside_of_the_api_are_not_readable_by_other_origins(app: Flask, alice: Client, sql: Sql) -> None:
    factories.link(sql, alice.id)
    for path in ("/", "/login", "/account", "/nothing", "/healthz", "/apis"):
        for answer in (preflight(app, path), app.test_client().get(path, headers={"Origin": ORIGIN})):
            assert answer.status_code != 204
            assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]
