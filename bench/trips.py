"""Count the round trips to the database of one request."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import psycopg2.extensions
from flask import Flask

from linkmgr.core.database.statements import Database


class _CountingCursor(psycopg2.extensions.cursor):
    trips = 0

    def execute(self, *arguments: Any) -> None:
        _CountingCursor.trips += 1
        super().execute(*arguments)


_connect = Database.connect


def _connect_counting(database: Database) -> psycopg2.extensions.connection:
    connection = _connect(database)
    connection.cursor_factory = _CountingCursor
    return connection


def count(app: Flask, request: Callable[[], dict[str, Any]]) -> int:
    """Return the round trips of the third such request. The first ones also prepare the
    statements."""
    database: Database = app.extensions["linkmgr_database"]
    with patch.object(Database, "connect", _connect_counting):
        database.close_idle()
        for _ in range(2):
            app.test_client().open(**request())
        before = _CountingCursor.trips
        app.test_client().open(**request())
    database.close_idle()
    return _CountingCursor.trips - before
