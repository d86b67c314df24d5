"""The schemas of bodies, asked directly."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from marshmallow import Schema

from linkmgr.core.errors import AppError
from linkmgr.core.fields.bodies import load
from tests.support.bodies import LEAST, Members
from tests.support.document import operations

Refusal = Callable[[type[Schema], Members], str]


def schemas(word: str) -> list[type[Schema]]:
    """Return the schemas of the bodies that create and update a row."""
    paths = rf"/api/({word}/add|{word}s|{word}/({{\w+}}/)?update|{word}/{{\w+}}/user/{{\w+}})"
    found = [route.operation.body for route in operations() if re.fullmatch(paths, route.path)]
    return [body for body in found if body]


@pytest.fixture
def refusal(app: Flask) -> Refusal:
    """Return the message with which a schema refuses a body, or "" if it accepts the body."""

    def message(schema: type[Schema], members: Members) -> str:
        with app.test_request_context():
            try:
                load(schema, members)
            except AppError as error:
                return error.message
        return ""

    return message


def least(word: str, schema: type[Schema]) -> dict[str, Any]:
    return {name: value for name, value in LEAST[word].items() if name in schema().fields}
