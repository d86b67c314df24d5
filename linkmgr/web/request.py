"""The request: whether it is for the API, and its body, whole and within the limit, or refused, whoever reads it."""

from collections.abc import Callable
from io import BytesIO
from typing import IO, cast

import flask
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge
from werkzeug.local import LocalProxy
from werkzeug.utils import cached_property

from linkmgr.web.caller import Caller

MAX_BODY = 64 * 1024  # bytes


class Request(flask.Request):
    caller: Caller  # set by auth, on API requests only

    @cached_property
    def is_api(self) -> bool:
        """Whether all answers to it are JSON with the rate-limit headers."""
        return self.path.startswith("/api/") or self.path == "/api"

    def body(self) -> bytes:
        """Once.  werkzeug's stream ends silently at the limit, and where the client stopped sending."""
        length = self.content_length
        if length is None and not self.environ.get("wsgi.input_terminated"):
            return b""  # as WSGI has it: nobody knows where it would end
        if (length or 0) > MAX_BODY:
            raise RequestEntityTooLarge
        try:
            # One byte more than is taken tells a body that ends at the limit from one that goes on.
            body: bytes = self.environ["wsgi.input"].read(MAX_BODY + 1 if length is None else length)
        except Exception:  # the errors of gunicorn's readers, such as that of a malformed chunk, share no other class
            raise BadRequest from None
        if len(body) > MAX_BODY:
            raise RequestEntityTooLarge
        if len(body) < (length or 0):
            raise BadRequest
        return body

    @cached_property
    def stream(self) -> IO[bytes]:
        """What forms are read from."""
        return BytesIO(self.body())


# The request itself, where several things are asked of it: `flask.request` looks it up for each.
current: Callable[[], Request] = cast("LocalProxy[Request]", flask.request)._get_current_object
