"""Services with a planted bug, to verify that `make faults` detects losses and duplicates."""

from flask import Flask

from linkmgr import create_app
from linkmgr.core.database import session
from linkmgr.core.web import idempotency
from linkmgr.visits import queue


def unsynced() -> Flask:
    """Respond before the write is on disk."""
    session.STARTUP_OPTIONS += " -c synchronous_commit=off"
    return create_app()


def forgetting() -> Flask:
    """Carry out a repeated request again."""
    idempotency.IdempotencyKey._replay = lambda self, sealed: None  # type: ignore[method-assign]
    return create_app()


def not_adopting() -> Flask:
    """Do not store the visits of processes that died."""
    queue.VisitQueue._store_orphans = lambda self: None  # type: ignore[method-assign]
    return create_app()
