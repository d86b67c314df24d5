"""Requests that the server refuses before the application sees them (deploy/worker.py)."""

import os
from http import HTTPStatus
from typing import Any

import orjson

from linkmgr.errors import CATALOGUE, HTTP_CODES, as_json
from linkmgr.settings import Settings
from linkmgr.web import origins, rate_limit
from linkmgr.web import request as web_request


def body_limit(path: str) -> int:
    """Return the bytes of the largest body that the server reads before it calls the application."""
    return web_request.BODY_LIMITS.get(path.rstrip("/"), (web_request.MAX_BODY, ""))[0]


def response(status: int) -> tuple[bytes, dict[str, Any]]:
    """Return the JSON error of the API as an HTTP response, and the WSGI environment for the access log."""
    code, request_id = HTTP_CODES.get(status, "bad_request"), web_request.new_id()
    body = orjson.dumps(as_json(code, CATALOGUE[code][1].format(id=request_id)))
    headers = [
        ("Connection", "close"),
        ("Content-Type", "application/json"),
        ("Content-Length", len(body)),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Request-Id", request_id),
        *rate_limit.headers_of_malformed(os.environ.get("LINKMGR_RATE_LIMIT") or Settings.rate_limit),
        *origins.HEADERS,
    ]
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    environ = {"REQUEST_METHOD": None, "PATH_INFO": None, web_request.REQUEST_ID: request_id}
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + body, environ
