"""The service with planted faults that runs must find. gunicorn loads `tests.fuzz.broken:app("nul")`."""

import re

from flask import Flask

from linkmgr import create_app
from linkmgr.core.database.statements import Row, row
from linkmgr.core.fields import base, strict_json
from linkmgr.repository import pixels


def _nul() -> None:
    """A text that PostgreSQL cannot store is let through."""
    strict_json.is_storable = lambda text: True
    base._CONTROL = re.compile(r"[\x01-\x1f\x7f]")


def _owner() -> None:
    """Read a pixel by its id alone."""

    def read(user_id: int, row_id: int) -> Row:
        found = row(
            "SELECT id, type, name, tag, created AS date, updated, version::text FROM pixels WHERE id = %(id)s",
            id=row_id,
        )
        return found or own(user_id, row_id)

    own, pixels.read = pixels.read, read  # type: ignore[assignment]


FAULTS = {"nul": _nul, "owner": _owner}


def app(*faults: str) -> Flask:
    for fault in faults:
        FAULTS[fault]()
    return create_app()
