"""Bodies with every member of an operation."""

from typing import Any

from marshmallow import Schema

from linkmgr.openapi.operations import OPERATIONS

Members = dict[str, Any]

# The least that creates a row, by the word in the path
LEAST: dict[str, Members] = {
    "account": {},
    "url": {"url": "https://example.com/page"},
    "bio": {"name": "Dana"},
    "domain": {"domain": "https://go.example.com"},
    "splash": {"name": "Welcome"},
    "overlay": {"type": "message", "name": "News"},
    "pixel": {"type": "bing", "name": "Shop", "tag": "UA-1"},
    "qr": {"type": "text", "data": "x"},
    "campaign": {"name": "Spring"},
    "channel": {"name": "Shop"},
    "key": {"name": "All", "scopes": ["*"]},
    "webhook": {"name": "Hook", "events": ["*"]},
    "plan": {"type": "monthly"},
    "user": {"username": "carol", "email": "carol@example.com", "password": "12345"},
}


def body_of(word: str, suffix: str) -> type[Schema] | None:
    found = [operation for operation in OPERATIONS if operation.path.startswith(f"/api/{word}/")]
    return next((operation.body for operation in found if operation.path.endswith(suffix)), None)


def sent(pairs: dict[str, tuple[Any, Any]]) -> Members:
    return {name: value for name, (value, _) in pairs.items()}
