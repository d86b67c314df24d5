"""The request: its id, its caller, and a body of limited size."""

import random
from collections.abc import Callable
from io import BytesIO
from typing import IO, Any, cast

import flask
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge
from werkzeug.local import LocalProxy
from werkzeug.utils import cached_property

from linkmgr.web.caller import Caller

MAX_BODY = 64 * 1024  # bytes
# Bytes, and the error code of a larger body, by the paths that accept more.
BODY_LIMITS: dict[str, tuple[int, str]] = {}
MAX_WARNINGS = 20  # in a response
REQUEST_ID = "linkmgr.request_id"  # key of the WSGI environment, set by the middleware


def new_id() -> str:
    return f"{random.getrandbits(64):016x}"


class Request(flask.Request):
    caller: Caller  # set by auth, on API requests only
    has_foreign_host = False  # set by pages.branded: the requested host is not our own
    warnings: tuple[str, ...] = ()  # sentences for the response of a write
    fixed: tuple[tuple[str, Any], ...] = ()  # members of the body of a write that it cannot change

    @cached_property
    def id(self) -> str:
        return str(self.environ.setdefault(REQUEST_ID, new_id()))  # commands run without the middleware

    @cached_property
    def is_api(self) -> bool:
        """Return True if all responses are JSON with the rate-limit headers."""
        return self.path.startswith("/api/") or self.path == "/api"

    @property
    def body_limit(self) -> tuple[int, str]:
        """Return the maximum of bytes, and the error code of a larger body."""
        return BODY_LIMITS.get(self.path.rstrip("/"), (MAX_BODY, "too_large"))

    def body(self) -> bytes:
        return self._body

    @cached_property
    def _body(self) -> bytes:
        """The body, which can be read from the client only once.

        werkzeug's stream ends without an error at its limit and where the client stopped sending.
        """
        length, limit = self.content_length, self.body_limit[0]
        if length is None and not self.environ.get("wsgi.input_terminated"):
            return b""  # the end of the stream is unknown
        if (length or 0) > limit:
            raise RequestEntityTooLarge
        try:
            # One byte more than the limit, to detect a longer body.
            body: bytes = self.environ["wsgi.input"].read(limit + 1 if length is None else length)
        except Exception:  # gunicorn's readers raise unrelated classes, for example for a malformed chunk
            raise BadRequest from None
        if len(body) > limit:
            raise RequestEntityTooLarge
        if len(body) < (length or 0):
            raise BadRequest
        return body

    @cached_property
    def stream(self) -> IO[bytes]:
        """The input of werkzeug's form parser."""
        return BytesIO(self.body())


# Return the request object itself. The proxy `flask.request` looks it up for each attribute.
current: Callable[[], Request] = cast("LocalProxy[Request]", flask.request)._get_current_object


def can_warn() -> bool:
    """Return True if the response has room for another warning. Commands use the same validation without a response."""
    return flask.has_request_context() and len(current().warnings) < MAX_WARNINGS


def warn(sentence: str) -> None:
    """Add a sentence to `warnings` in the response, or to the messages of a form: a value was accepted, but cannot have
    the effect that was meant."""
    if can_warn() and sentence not in current().warnings:
        current().warnings += (sentence,)


def note_ignored_member(name: str, value: Any) -> None:
    """Keep a member that a write cannot change, for a warning if the record has another value."""
    if flask.has_request_context():
        current().fixed += ((name, value),)
