"""Contract tests: call each documented operation. tests/conftest.py compares every response with the document and
checks the form of errors. This module causes each kind of error for each operation."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from marshmallow import Schema

from linkmgr.core.web.operation import routes
from linkmgr.features.exports.handlers import exports
from tests.conftest import BASE_URL, ROOT
from tests.support import contract
from tests.support.document import operations, property_validators
from tests.support.factories import RESOURCES
from tests.support.operations import KEYED, Call
from tests.support.stage import Stage
from tests.support.worlds import Rows

with_body = pytest.mark.parametrize("call", [call for call in KEYED if call.operation.body], ids=str)
UNSUITABLE: list[Any] = [-1, 5, 1.5, True, "\x01", "x" * 5000, "a b", {}, {"x": 1}, [], [5]]


@pytest.mark.parametrize(("calls", "index"), [*contract.READ, *contract.WRITES])
def test_the_documented_body_is_read_and_the_response_matches_the_document(
    stage: Stage, read_by: list[type[Schema]], calls: list[Call], index: int
) -> None:
    contract.check(stage, read_by, calls, index)


def test_urls_of_this_service_begin_with_its_base_url(stage: Stage) -> None:
    for call in KEYED:
        if call.method == "GET" and not call.operation.file:
            text, word = stage.caller(call).get(stage.path(call)).text, call.path.split("/")[2]
            sent = [
                name
                for kind in RESOURCES
                if word in (kind.words.path, kind.words.plural)
                for name in kind.resource.creates()().fields
            ]
            names = {"shorturl", "avatar", "rotator", "list", "link", "url"}.difference(sent)
            if "geotarget" in sent:
                names -= {"link"}  # of targets
            for name, url in re.findall(rf'"({"|".join(names)})":"(http[^"]*)"', text):
                assert url.startswith(f"{BASE_URL}/"), (name, url)


@with_body
def test_each_required_member_is_named_when_it_is_missing(stage: Stage, call: Call) -> None:
    assert call.operation.body
    body = stage.bodies(call)[0] or {}
    for name, field in call.operation.body().fields.items():
        if field.required:
            sent = {member: value for member, value in body.items() if member != name}
            answer = stage.caller(call).call(call.method, stage.path(call), sent)
            assert answer.status_code == 400
            assert f"{name} is required" in answer.get_json()["message"]


@with_body
def test_each_value_that_the_document_forbids_is_rejected_and_changes_nothing(
    stage: Stage, call: Call, dump: Callable[[], Rows]
) -> None:
    assert call.operation.body
    body, before = stage.bodies(call)[0] or {}, dump()
    for name, documented in property_validators(call.operation.body.__name__).items():
        values = [value for value in UNSUITABLE if not documented.is_valid(value) and not is_lenient(name, value)]
        assert values or name == "data"  # that of a QR code is any value; its type says which
        for value in values:
            answer = stage.caller(call).call(call.method, stage.path(call), body | {name: value})
            assert answer.status_code == 400, (name, value)
            assert name in answer.get_json()["message"]
    assert dump() == before


@pytest.mark.parametrize("call", [call for call in KEYED if call.path.endswith("_id}/delete")], ids=str)
def test_a_deleted_row_is_unknown(stage: Stage, call: Call) -> None:
    client, path = stage.caller(call), stage.path(call)
    assert client.delete(path).status_code == 200
    for answer in (client.get(path.removesuffix("/delete")), client.delete(path)):
        assert answer.status_code == 404
        assert re.fullmatch(r"There is no [\w ]+ with this id\.", answer.get_json()["message"])


def is_lenient(name: str, value: Any) -> bool:
    """Return True if clients rely on the value: in a link, malformed array elements are ignored, and PHP sends [] for
    an empty object."""
    return (name != "links" and value == [5]) or (name in ("deeplink", "metadata") and value in ([], {"x": 1}))


def test_every_route_of_the_api_is_documented_and_the_reverse(app: Flask) -> None:
    served = {(route.method, route.path) for route in routes(app) if route.operation.id}
    assert served == {(route.method, route.path) for route in operations()}


def test_a_path_lists_its_methods(stage: Stage) -> None:
    for call in KEYED:
        answer = stage.caller(call).call("PATCH", stage.path(call))
        assert answer.status_code == 405, call
        taken = {route.method for route in operations() if route.path == call.route.path}
        assert answer.headers["Allow"] == ", ".join(sorted(taken | ({"HEAD"} if "GET" in taken else set())))


def test_every_path_but_those_of_exports_is_text_in_the_module_of_its_word(app: Flask) -> None:
    files = [*(ROOT / "linkmgr/api").glob("*.py"), *(ROOT / "linkmgr/features").rglob("handlers.py")]
    sources = "".join(path.read_text() for path in files)
    written = set(re.findall(r'^@bp\.(get|post|put|delete)\("([^"]+)"\)', sources, re.MULTILINE))
    served = {(route.method.lower(), route.rule.rule.removeprefix("/api")) for route in routes(app)}
    derived = {path for method, path in served - written if method == "get"}
    assert written <= served
    with app.app_context():
        words = [exported.stored.words.plural for exported in exports()]
    exported = {f"/{word}/export{end}" for word in words for end in ("", ".csv")}
    assert derived == exported | {"/openapi.json", "/docs", "/docs/<section>", "/docs/changes"}
    assert len(served - written) == len(derived)
