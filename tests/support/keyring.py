"""Clients with API keys, for the tests of keys."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from flask import Flask

from linkmgr.features.scoped_keys.schema import KEYS
from tests.support import factories
from tests.support.document import operations
from tests.support.factories import Sql

if TYPE_CHECKING:
    from tests.conftest import Client

URL = "https://example.com/page"
# The resources that restricted keys make, besides other keys
_CREATED = {route.path for route in operations() if route.method == "POST" and route.operation.restricted}
OWNED = [it.words.path for it in factories.RESOURCES if f"/api/{it.words.path}/add" in _CREATED and it is not KEYS]
Make = Callable[..., "Client"]


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.get_json().get("code", "")


def branded(sql: Sql, owner: "Client") -> tuple[int, str]:
    """Return the id and the URL of a new domain."""
    domain_id = factories.domain(sql, owner.id)
    [domain] = sql("SELECT domain AS url FROM domains WHERE id = %(id)s", id=domain_id)
    return domain_id, domain["url"]


@pytest.fixture
def make_key() -> Make:
    """Make a key with the key of a client, and return a client with it. Its id is the one of the key."""

    def make(owner: "Client", *scopes: str, **limits: Any) -> "Client":
        answer = owner.post("/api/key/add", {"name": "Shop", "scopes": scopes or ["*"]} | limits)
        assert answer.status_code == 200, answer.text
        added = answer.get_json()
        return type(owner)(owner.http, added["key"], added["id"], owner.username)

    return make


@pytest.fixture(params=["1", "0"], ids=["prepared", "pooler"])
def make_restricted(request: pytest.FixtureRequest, app_with: Callable[..., Flask], make_key: Make) -> Make:
    """Make a key with all scopes and the given limits, and return a client with it."""
    service = app_with(prepare=request.param)

    def make(owner: "Client", **limits: Any) -> "Client":
        client = make_key(owner, **limits)
        client.http = service.test_client()
        return client

    return make
