"""The world of the access matrix: rows of each sort of two users and an administrator, and all rows of the database."""

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg2
import pytest
from flask import Flask
from psycopg2 import sql as composed
from werkzeug.test import TestResponse

from tests.support import factories
from tests.support.factories import Sql
from tests.support.operations import CONVERSIONS, Call

if TYPE_CHECKING:
    from tests.conftest import Client


class World:
    """Alice with one row of each sort, and other users who must not reach them."""

    def __init__(self, app: Flask, register: Callable[..., "Client"], sql: Sql) -> None:
        self.app, self.register, self.sql = app, register, sql
        self.clients = {
            "owner": register("alice", via=app),
            "other": register("bob", via=app),
            "administrator": register("admin", admin=True, via=app),
        }
        self.plan = factories.plan(sql)
        self.made: dict[tuple[str, str], int] = {}

    def id(self, what: str, actor: str) -> int:
        """Return the id of a row of the actor, created on first use."""
        if (what, actor) not in self.made:
            self.made[what, actor] = self._make(what, self.clients[actor])
        return self.made[what, actor]

    def ids(self, call: Call, actor: str) -> list[int]:
        return [self.id(what, actor) for what in call.rows]

    def ready_ids(self, call: Call, actor: str) -> list[int]:
        """Return the ids for a call that succeeds: what is restored is in the bin, and what the body names exists."""
        ids = [self.id("link", actor)] if call.path == CONVERSIONS else self.ids(call, actor)
        if call.path.endswith("/restore"):
            self.clients[actor].delete(f"/api/{call.path.split('/')[2]}/{ids[0]}/delete?bin=1")
        return ids

    def fill(self, actor: str) -> None:
        for what in factories.ALL:
            self.id(what, actor)

    def _make(self, what: str, client: "Client") -> int:
        match what:
            case "user":
                return client.id
            case "plan":
                return self.plan
            case _:
                return factories.ALL[what](self.sql, client.id)


@pytest.fixture(scope="module")
def aging(make_app: Callable[..., Flask]) -> Flask:
    """The service with expiring keys."""
    return make_app(key_lifetime_days="30")


@pytest.fixture
def world(aging: Flask, register: Callable[..., "Client"], sql: Sql) -> World:
    return World(aging, register, sql)


Rows = dict[str, list[dict[str, Any]]]


_ROWS = composed.SQL("SELECT to_jsonb(t) - '{{last_used,last_address}}'::text[] FROM {} t")


@pytest.fixture
def dump(raw: psycopg2.extensions.connection) -> Callable[[], Rows]:
    """Every row of every table except the rate limit counters, and the last uses of keys."""

    def read() -> Rows:
        with raw.cursor() as cursor:
            cursor.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'rate_windows'"
            )
            found = {}
            for (table,) in cursor.fetchall():
                cursor.execute(_ROWS.format(composed.Identifier(table)))
                found[table] = sorted((row for (row,) in cursor), key=lambda row: json.dumps(row, sort_keys=True))
            return found

    return read


def without_request_id(answer: TestResponse) -> bytes:
    return re.sub(rb'"request_id":"[0-9a-f]{16}"', b"", answer.data)


def ask(client: "Client", call: Call, ids: list[int]) -> TestResponse:
    return client.call(call.method, call.path_of(ids), call.example_of(ids), **call.upload)
