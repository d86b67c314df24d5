"""Bodies with every member of an operation."""

from typing import Any

from marshmallow import Schema

from linkmgr.openapi.operations import OPERATIONS

Members = dict[str, Any]


def body_of(word: str, suffix: str) -> type[Schema] | None:
    found = [operation for operation in OPERATIONS if operation.path.startswith(f"/api/{word}/")]
    return next((operation.body for operation in found if operation.path.endswith(suffix)), None)


def sent(pairs: dict[str, tuple[Any, Any]]) -> Members:
    return {name: value for name, (value, _) in pairs.items()}
