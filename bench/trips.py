"""Count the round trips to the database of one request."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from flask import Flask

from linkmgr.db.connections import Cursor


def count(app: Flask, request: Callable[[], dict[str, Any]]) -> int:
    """Return the round trips of the third such request. The first one also prepares the statements, and the second one
    counts the next ones for the rate limit."""
    for _ in range(2):
        app.test_client().open(**request())
    with patch.object(Cursor, "execute", autospec=True, side_effect=Cursor.execute) as execute:
        app.test_client().open(**request())
    return execute.call_count
