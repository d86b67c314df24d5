"""Services that are wrong on purpose, which shows that the loss and the doubling would be seen."""

from collections.abc import Callable
from typing import Any

from flask import Flask

from linkmgr import create_app
from linkmgr.db import session, statements
from linkmgr.visits import queue


def unflushed() -> Flask:
    """Answers before the write is on the disk."""
    session.STARTUP_OPTIONS += " -c synchronous_commit=off"
    return create_app()


def repeating() -> Flask:
    """Sends a write again when its answer was lost."""
    execute: Callable[..., Any] = statements.Database.execute

    def again(self: statements.Database, sql: str, params: statements.Row, **options: Any) -> Any:
        return execute(self, sql, params, **(options | {"again": True}))

    statements.Database.execute = again  # type: ignore[method-assign]
    return create_app()


def forgetting() -> Flask:
    """Leaves the visits of dead processes alone."""
    queue.VisitQueue._store_orphans = lambda self: True  # type: ignore[method-assign]
    return create_app()
