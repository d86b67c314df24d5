"""Calls of operations with the bodies of the document, whose responses are compared with it."""

from io import BytesIO
from typing import Any

import pytest
from marshmallow import Schema

from linkmgr.api.channels import Assignment
from linkmgr.core.fields import bodies
from tests.support.document import document, validator
from tests.support.operations import KEYED, READS, Call
from tests.support.stage import Stage

READ = [pytest.param(READS, 0, id="reads")]
WRITES = [
    pytest.param([call], index, id=f"{call} {('least', 'all')[index]}")
    for call in KEYED
    if call not in READS
    for index in range(len(call.bodies()))
]


def lists_in(value: Any) -> list[Any]:
    match value:
        case list():
            return [value]
        case dict():
            return [found for inner in value.values() for found in lists_in(inner)]
        case _:
            return []


@pytest.fixture
def read_by(monkeypatch: pytest.MonkeyPatch) -> list[type[Schema]]:
    """Record the schema of each body that is read."""
    found: list[type[Schema]] = []
    load = bodies.load

    def noted(schema: type[Schema], members: dict[str, Any]) -> dict[str, Any]:
        found.append(schema)
        return load(schema, members)

    monkeypatch.setattr(bodies, "load", noted)
    return found


def check(stage: Stage, read_by: list[type[Schema]], calls: list[Call], index: int) -> None:
    headers = {"Accept": "application/json"}  # without it, some responses are CSV
    for call in calls:
        body, sent = call.operation.body, stage.bodies(call)[index]
        read_by.clear()
        text = call.upload.get("data", "")
        upload = {"data": {"file": (BytesIO(text.encode()), "rows.csv")}} if text else {}
        answer = stage.caller(call).call(call.method, stage.path(call), sent, headers=headers, **upload)
        assert answer.status_code == 200, (call, answer.text)
        if not call.operation.row_id:  # whether the row exists decides how the body is read
            assert [schema for schema in read_by if schema is not Assignment] == ([body] if body else []), call
        if body:
            validator(body.__name__).validate(sent)
        if call.operation.file:
            assert answer.mimetype == call.operation.file, call
            continue
        response = document()["paths"][call.route.path][call.method.lower()]["responses"]["200"]
        example = response["content"]["application/json"]["example"]
        assert answer.get_json().get("message") == example.get("message"), call
        assert "warnings" not in answer.get_json(), call
        if call.method == "GET" and call.path not in ("/api/bio/{bio_id}", "/api/url/{link_id}/conversions"):
            assert all(lists_in(answer.get_json())), f"a list is empty, so nothing was compared: {call} {answer.text}"
