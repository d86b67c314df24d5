"""How often the service goes to the database for one request, counted where it does."""

from collections.abc import Callable
from typing import Any

import psycopg2.extensions
from flask import Flask

from linkmgr.db.statements import Database


class _Cursor(psycopg2.extensions.cursor):
    trips = 0

    def execute(self, *arguments: Any) -> None:
        _Cursor.trips += 1
        super().execute(*arguments)


class _Counting(Database):
    def connect(self) -> psycopg2.extensions.connection:
        connection = super().connect()
        connection.cursor_factory = _Cursor
        return connection


def count(app: Flask, request: Callable[[], dict[str, Any]]) -> int:
    """Of the second request like it: the first one prepares its statements."""
    used: Database = app.extensions["linkmgr_database"]
    counting = _Counting(used.dsn, used.prepare, used.on_connect)
    app.extensions["linkmgr_database"] = app.extensions["linkmgr_reader"] = counting
    app.test_client().open(**request())
    before = _Cursor.trips
    app.test_client().open(**request())
    return _Cursor.trips - before
