"""Compression of text, for installations without a proxy that does it (deploy/nginx)."""

import gzip

from flask import Flask, Response

from linkmgr.core.web import streams
from linkmgr.core.web.request import current

_LEAST = 1024  # bytes
_LEVEL = 5
_TEXT = ("text/", "application/json", "application/javascript", "image/svg+xml")


def init_app(app: Flask) -> None:
    app.after_request(_compress)


def _compress(response: Response) -> Response:
    """Compress a text that is not streamed. Its ETag becomes a weak one, because its bytes are
    others."""
    size = sum(map(len, response.response)) if response.is_sequence else 0
    if size > streams.LARGE and current().method == "GET":
        response = streams.with_place(response)
    if 0 < size < _LEAST or response.location or not (response.content_type or "").startswith(_TEXT):
        return response
    is_file = response.direct_passthrough  # such as a style sheet
    if response.is_streamed and not is_file:
        return response
    response.headers.add("Vary", "Accept-Encoding")
    request = current()
    if "HTTP_ACCEPT_ENCODING" not in request.environ or not request.accept_encodings["gzip"]:
        return response
    if request.method == "POST" and not request.is_api:
        return (
            response  # its length would tell how much of a key in it is the same as what was typed (BREACH)
        )
    if "Content-Encoding" in response.headers or "Content-Range" in response.headers:
        return response
    response.direct_passthrough = False
    content = response.get_data()
    if len(content) >= _LEAST:
        response.set_data(gzip.compress(content, _LEVEL, mtime=0))
        response.content_encoding = "gzip"
        tag, _ = response.get_etag()
        if tag:
            response.set_etag(tag, weak=True)
    return response
