"""Services that are wrong on purpose, which shows that the loss and the doubling would be seen."""

from collections.abc import Callable
from typing import Any

from flask import Flask

from linkmgr import create_app, database, postgres_session, recorder


def unflushed() -> Flask:
    """Answers before the write is on the disk."""
    postgres_session.SENT_ONCE += " -c synchronous_commit=off"
    return create_app()


def repeating() -> Flask:
    """Sends a write again when its answer was lost."""
    execute: Callable[..., Any] = database.Database.execute

    def again(self: database.Database, sql: str, params: database.Row, **options: Any) -> Any:
        return execute(self, sql, params, **(options | {"again": True}))

    database.Database.execute = again  # type: ignore[method-assign]
    return create_app()


def forgetting() -> Flask:
    """Leaves the visits of dead processes alone."""
    recorder.Recorder._adopt = lambda self: True  # type: ignore[method-assign]
    return create_app()
