"""The bodies of requests: whole and within the limit, or refused, whoever reads them."""

from functools import cached_property
from io import BytesIO
from typing import IO

import flask
from werkzeug.exceptions import BadRequest, HTTPException, RequestEntityTooLarge
from werkzeug.wsgi import get_input_stream

LARGEST_BODY = 64 * 1024  # bytes


class Request(flask.Request):
    @cached_property
    def stream(self) -> IO[bytes]:
        """werkzeug's own ends silently at the limit, and where the client stopped sending."""
        try:
            # One byte more than is taken tells a body that ends at the limit from one that goes on.
            body = get_input_stream(self.environ, max_content_length=LARGEST_BODY + 1).read()
        except HTTPException:
            raise
        except Exception:  # the errors of gunicorn's readers, such as that of a malformed chunk, share no other class
            raise BadRequest from None
        if len(body) > LARGEST_BODY:
            raise RequestEntityTooLarge
        if len(body) < (self.content_length or 0):
            raise BadRequest
        return BytesIO(body)
