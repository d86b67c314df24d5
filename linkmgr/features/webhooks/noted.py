"""Connections that see the row of an event as it was written: see `noted` in schema.sql."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
from flask import Flask

from linkmgr.core.database.schemas import SchemaDatabase
from linkmgr.core.database.statements import Row, database, executor
from linkmgr.core.settings import this_app


class NotedDatabase(SchemaDatabase):
    settings: Row = {}

    def of_row(self, table: str, stored: Row) -> "NotedDatabase":
        noted = copy.copy(self)
        noted.settings = {"noted_table": table, "noted_row": orjson.dumps(stored).decode()}
        # The last value fails if the schema is missing: PostgreSQL would skip it in the search
        # path.
        noted.prelude += (
            "SELECT set_config('linkmgr.noted_table', %(noted_table)s, true), "
            "set_config('linkmgr.noted_row', %(noted_row)s, true), 'noted.links'::regclass; "
        )
        return noted

    def execute(self, sql: str, params: Row, *, idempotent: bool, prelude: str = "") -> list[Row]:
        return super().execute(sql, params | self.settings, idempotent=idempotent, prelude=prelude)


@contextmanager
def as_written(table: str, stored: Row) -> Iterator[None]:
    pool: NotedDatabase = this_app().extensions["linkmgr_noted"]
    executor.set(pool.of_row(table, stored))
    try:
        yield
    finally:
        executor.set(None)


def init_app(app: Flask) -> None:
    with app.app_context():
        app.extensions["linkmgr_noted"] = NotedDatabase(database(), "noted")
