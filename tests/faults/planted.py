"""Services with a planted bug, to verify that `make faults` detects losses and duplicates."""

from collections.abc import Callable
from typing import Any

from flask import Flask

from linkmgr import create_app
from linkmgr.db import session, statements
from linkmgr.visits import queue


def unsynced() -> Flask:
    """Respond before the write is on disk."""
    session.STARTUP_OPTIONS += " -c synchronous_commit=off"
    return create_app()


def repeating() -> Flask:
    """Repeat a write whose response was lost."""
    execute: Callable[..., Any] = statements.Database.execute

    def again(self: statements.Database, sql: str, params: statements.Row, **options: Any) -> Any:
        return execute(self, sql, params, **(options | {"again": True}))

    statements.Database.execute = again  # type: ignore[method-assign]
    return create_app()


def not_adopting() -> Flask:
    """Do not store the visits of processes that died."""
    queue.VisitQueue._store_orphans = lambda self: True  # type: ignore[method-assign]
    return create_app()
