"""Paths that are nearly right. The message names the operation that was probably meant; status and code stay."""

import re

import pytest

from linkmgr.core.web.suggestions import MAX_PATH
from tests.conftest import Client
from tests.support.document import operations

PLAIN = "API operation not found. Check the URL; /api/docs lists all operations."
BY_SHORT = "The id of a link is a number. Find the link by its short URL with GET /api/urls?short=SHORT_URL."


def message(client: Client, method: str, path: str) -> str:
    answer = client.call(method, path)
    body = answer.get_json()
    assert (answer.status_code, body["code"]) == (404, "no_such_operation")
    return str(body["message"])


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("GET", "/api/links", "GET /api/urls"),
        ("GET", "/api/URLs", "GET /api/urls"),
        ("GET", "/api/ulrs", "GET /api/urls"),
        ("GET", "/api/v1/urls", "GET /api/urls"),
        ("GET", "/api/v2/links/17", "GET /api/url/:link_id"),
        ("GET", "/api/urls/17", "GET /api/url/:link_id"),
        ("GET", "/api/url/17/stats", "GET /api/url/:link_id"),
        ("POST", "/api/url", "POST /api/url/add"),
        ("POST", "/api/shorten", "POST /api/url/add"),
        ("PATCH", "/api/links/17", "PUT /api/url/:link_id/update"),
        ("PUT", "/api/url/17/edit", "PUT /api/url/:link_id/update"),
        ("DELETE", "/api/urls/17", "DELETE /api/url/:link_id/delete"),
        ("DELETE", "/api/url/delete/17", "DELETE /api/url/:link_id/delete"),
        ("POST", "/api/campaigns/add", "POST /api/campaign/add"),
        ("POST", "/api/campaign/3/link/4", "POST /api/campaign/:campaign_id/assign/:link_id"),
        ("GET", "/api/overlays/3/answers", "GET /api/overlay/:overlay_id/answers"),
        ("GET", "/api/splashes", "GET /api/splash"),
        ("GET", "/api//account", "GET /api/account"),
        ("PUT", "/api/account/edit", "PUT /api/account/update"),
        ("GET", "/api/swagger.json", "GET /api/openapi.json"),
        ("GET", "/api/user/17/login", "GET /api/user/login/:user_id"),
    ],
)
def test_a_path_that_is_nearly_right_names_the_nearest_operation(
    admin: Client, method: str, path: str, operation: str
) -> None:
    assert message(admin, method, path) == (
        f"API operation not found. Did you mean {operation}? /api/docs lists all operations."
    )


def test_an_id_that_is_no_number_is_a_404_for_every_operation(admin: Client) -> None:
    paths = {(route.method, re.sub(r"{\w+}", "x", route.path)) for route in operations() if "_id}" in route.path}
    assert all("number" in message(admin, method, path) for method, path in sorted(paths))


@pytest.mark.parametrize(
    ("method", "path", "allowed", "operation"),
    [
        ("POST", "/api/urls", "GET", "POST /api/url/add"),
        ("PATCH", "/api/url/17", "GET", "PUT /api/url/:link_id/update"),
        ("POST", "/api/channel/17", "GET", "PUT /api/channel/:channel_id/update"),
        ("DELETE", "/api/url/17", "GET", "DELETE /api/url/:link_id/delete"),
        ("POST", "/api/stats", "GET", ""),
        ("GET", "/api/url/add", "POST", ""),
        ("PATCH", "/api/url/17/update", "PUT", ""),
        ("DELETE", "/api/account", "GET, POST", ""),
        ("OPTIONS", "/api/urls", "GET", ""),
    ],
)
def test_of_methods_that_are_not_allowed_only_a_write_to_a_path_that_is_only_read_names_an_operation(
    admin: Client, method: str, path: str, allowed: str, operation: str
) -> None:
    answer = admin.call(method, path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed.replace("GET", "GET, HEAD"))
    hint = f" Did you mean {operation}? /api/docs lists all operations." * bool(operation)
    assert answer.get_json()["message"] == (
        f"The method {method} is not allowed for this URL. Allowed methods: {allowed}.{hint}"
    )


@pytest.mark.parametrize("link_id", ["summer", "-1", "1.0", "%D9%A3", "+1", "1%00", "1%0a", "1e3"])
def test_a_link_id_that_is_not_a_number_names_the_look_up_by_short_url(alice: Client, link_id: str) -> None:
    for method, suffix in (("GET", ""), ("PUT", "/update"), ("DELETE", "/delete")):
        assert message(alice, method, f"/api/url/{link_id}{suffix}") == f"API operation not found. {BY_SHORT}"


@pytest.mark.parametrize(
    ("method", "path", "index"),
    [
        ("DELETE", "/api/campaign/abc/delete", "GET /api/campaigns"),
        ("GET", "/api/qr/abc", "GET /api/qr"),
        ("PUT", "/api/domain/go.example.org/update", "GET /api/domains"),
        ("POST", "/api/channel/abc/assign/links/1", "GET /api/channels"),
    ],
)
def test_another_id_that_is_not_a_number_names_the_list_with_the_ids(
    alice: Client, method: str, path: str, index: str
) -> None:
    assert message(alice, method, path) == f"API operation not found. An id is a number. {index} lists the ids."


@pytest.mark.parametrize(
    "path", ["/api", "/api/", "/api/x", "/api/17", "/api/%ff", "/api/v1", "/api/weather", f"/api/{'url' * MAX_PATH}"]
)
def test_a_path_that_resembles_no_operation_names_none(alice: Client, path: str) -> None:
    assert message(alice, "GET", path) == PLAIN


def test_a_client_without_a_key_gets_no_hint(anonymous: Client) -> None:
    assert anonymous.get("/api/links").status_code == 401


def test_each_operation_is_found_under_a_version_of_the_api(admin: Client) -> None:
    for route in operations():
        path = re.sub(r"{\w+_id}", "17", re.sub(r"{\w+(?<!_id)}", "links", route.path))
        found = message(admin, route.method, path.replace("/api/", "/api/v3/"))
        named = re.sub(r"{(\w+)}", r":\1", route.path)
        assert f"Did you mean {route.method} {named}?" in found
