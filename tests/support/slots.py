"""Requests that take long."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from flask import Flask

from linkmgr.core.web import pool


@contextmanager
def taken(app: Flask, *holders: object) -> Iterator[None]:
    """Let each of these have a request that takes long."""
    with ExitStack() as requests:
        for holder in holders:
            requests.enter_context(app.test_request_context("/"))
            pool.count_for(holder)
            pool.take("busy")
        yield


@contextmanager
def full(app: Flask) -> Iterator[None]:
    """Let other users have as many requests that take long as there may be."""
    with taken(app, -1, -2):
        yield
