"""Each operation of the specification called, with the names and types of all members compared.

What a refusal looks like is asserted by tests/conftest.py on every call; here each kind is caused for each operation.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from linkmgr.db import statements
from linkmgr.web.auth import PUBLIC_BLUEPRINTS
from tests.conftest import Client
from tests.contract import Operation, fits
from tests.operations import OPERATIONS

Sql = Callable[..., list[statements.Row]]

over_operations = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: f"{o.method} {o.path}")


class Stage:
    """Alice with one of everything, the channel holding an item of each type, and an administrator."""

    def __init__(self, alice: Client, admin: Client, sql: Sql) -> None:
        self.alice, self.admin = alice, admin

        def insert(table: str, **columns: Any) -> int:
            names = ", ".join(columns)
            values = ", ".join(f"%({name})s" for name in columns)
            inserted = sql(
                f"INSERT INTO {table} (user_id, {names}) VALUES (%(user_id)s, {values}) RETURNING id",
                user_id=alice.id,
                **columns,
            )
            return int(inserted[0]["id"])

        self.ids = {
            "user": alice.id,
            "plan": next(int(plan["id"]) for plan in admin.get("/api/plans").get_json()["data"] if not plan["free"]),
            "domain": alice.add("/api/domain/add", {"domain": "https://alice.example.net"}),
            "pixel": alice.add("/api/pixel/add", {"type": "bing", "name": "Shop", "tag": "1"}),
            "qr": alice.add("/api/qr/add", {"type": "text", "data": "Hello"}),
            "campaign": alice.add("/api/campaign/add", {"name": "Spring", "slug": "spring", "public": True}),
            "channel": alice.add("/api/channel/add", {"name": "Reading"}),
            "link": insert("links", alias="abc", url="https://example.org/", title="Example"),
            "bio": insert("bios", alias="me", name="Me"),
            "splash": insert("splash_pages", name="Wait"),
            "overlay": insert("overlays", type="message", name="Look"),
        }
        insert("overlay_answers", overlay_id=self.ids["overlay"], answer='{"email": "visitor@example.com"}')
        for kind, item in (("links", "link"), ("bio", "bio"), ("qr", "qr")):
            answer = alice.post(f"/api/channel/{self.ids['channel']}/assign/{kind}/{self.ids[item]}")
            assert answer.status_code == 200

    def caller(self, operation: Operation) -> Client:
        return self.admin if operation.administration else self.alice

    def path(self, operation: Operation, **instead: int) -> str:
        return operation.path.format(**(self.ids | instead))


@pytest.fixture
def stage(alice: Client, admin: Client, sql: Sql) -> Stage:
    return Stage(alice, admin, sql)


def bodies(operation: Operation) -> list[dict[str, Any] | None]:
    """What must be sent, alone and with what may be sent."""
    if operation.method in ("GET", "DELETE"):
        return [None]
    least = operation.body or dict(list(operation.optional.items())[:1])
    return [least, operation.body | operation.optional]


CALLS = [
    pytest.param(operation, index, id=f"{operation.method} {operation.path} {('least', 'all')[index]}")
    for operation in OPERATIONS
    for index in range(len(bodies(operation)))
]


@pytest.mark.parametrize(("operation", "index"), CALLS)
def test_the_answer_has_the_documented_members_and_types(stage: Stage, operation: Operation, index: int) -> None:
    sent = bodies(operation)[index]
    answer = stage.caller(operation).call(operation.method, stage.path(operation), sent)
    assert answer.status_code == 200
    assert fits(answer.get_json(), operation.answer), answer.get_json()


@over_operations
def test_without_a_key_an_operation_is_refused(stage: Stage, anonymous: Client, operation: Operation) -> None:
    answer = anonymous.call(operation.method, stage.path(operation), bodies(operation)[-1])
    assert answer.status_code == 401


@over_operations
def test_administration_is_refused_to_a_user_and_nothing_else_is(stage: Stage, operation: Operation) -> None:
    answer = stage.alice.call(operation.method, stage.path(operation), bodies(operation)[-1])
    assert answer.status_code == (403 if operation.administration else 200)


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.body], ids=lambda o: f"{o.method} {o.path}")
def test_each_required_member_is_named_when_it_is_missing(stage: Stage, operation: Operation) -> None:
    for name in operation.body:
        sent = {member: value for member, value in operation.body.items() if member != name}
        answer = stage.caller(operation).call(operation.method, stage.path(operation), sent)
        assert answer.status_code == 400
        assert f"{name} is required" in answer.get_json()["message"]


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.wrong], ids=lambda o: f"{o.method} {o.path}")
def test_a_member_that_does_not_fit_is_named(stage: Stage, operation: Operation) -> None:
    sent = operation.body | operation.wrong
    answer = stage.caller(operation).call(operation.method, stage.path(operation), sent)
    assert answer.status_code == 400
    assert next(iter(operation.wrong)) in answer.get_json()["message"]


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if "{" in o.path], ids=lambda o: f"{o.method} {o.path}")
def test_each_id_that_does_not_exist_is_not_found(stage: Stage, operation: Operation) -> None:
    for name in re.findall(r"{(\w+)}", operation.path):
        path = stage.path(operation, **{name: 2**62})
        answer = stage.caller(operation).call(operation.method, path, bodies(operation)[-1])
        assert answer.status_code == 404, path


def test_the_routes_are_the_operations_of_the_specification(app: Flask) -> None:
    routes = {
        (method, re.sub(r"<[^>]+>", ":", rule.rule))
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api") and rule.endpoint.partition(".")[0] not in PUBLIC_BLUEPRINTS
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    documented = {(o.method, re.sub("/assign/(links|bio|qr)/", "/assign/:/", o.rule)) for o in OPERATIONS}
    assert routes == documented


@over_operations
def test_a_path_names_the_methods_that_it_takes(stage: Stage, operation: Operation) -> None:
    answer = stage.caller(operation).call("PATCH", stage.path(operation))
    assert answer.status_code == 405
    taken = {o.method for o in OPERATIONS if o.rule == operation.rule}
    assert answer.headers["Allow"] == ", ".join(sorted(taken))
