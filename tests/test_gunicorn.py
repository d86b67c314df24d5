"""Responses and logs of gunicorn itself (deploy/gunicorn.conf.py)."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from linkmgr.core.error_catalogue import CATALOGUE
from tests.conftest import Client, check_quota
from tests.support.raw_http import LARGEST, PIXEL, TOKEN, chunk, send

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def base(shared: Callable[..., str]) -> str:
    return shared("--workers", "1", rate_limit="50 per minute")


def test_malformed_http_has_the_envelope_and_the_headers(base: str) -> None:
    for request, expected, code in [
        (b"NONSENSE\r\n\r\n", 400, "bad_request"),
        (b"GET /api/account HTTP/9.9\r\n\r\n", 400, "bad_request"),
        (b"GET /api/account HTTP/1.1\r\nBad Name: 1\r\n\r\n", 400, "bad_request"),
        (b"GET /api/account HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400, "bad_request"),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414, "address_too_long"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431, "headers_too_large"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n\r\n", 417, "expectation_failed"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: morse\r\n\r\n", 501, "not_implemented"),
    ]:
        status, headers, body = send(base, request)
        assert status == expected
        assert headers["Content-Type"] == "application/json"
        assert headers["X-Content-Type-Options"] == "nosniff"
        docs, request_id = f"{base}/api/docs/errors#error-{code}", headers["X-Request-Id"]
        error = {"error": 1, "message": CATALOGUE[code][1], "code": code, "request_id": request_id, "docs": docs}
        assert json.loads(body) == error
        assert (headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"]) == ("50", "50")
        assert headers["X-RateLimit-Reset"].isdigit()
        check_quota(headers)
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert "RateLimit-Policy" in headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize(
    "body", [b"5\r\nabcde\r\n0\r\nmalformed trailer\r\n\r\n", b"5\r\nabcdeXX0\r\n\r\n", b"-1\r\n\r\n\r\n"]
)
def test_a_malformed_body_gets_one_response_and_is_no_error_of_ours(
    base: str, alice: Client, logs: Path, body: bytes
) -> None:
    """Bytes behind the body are not read: they could be a request that another client did not send."""
    head = b"POST /api/url/add HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    read = b"Authorization: Bearer %s\r\n" % str(alice.key).encode()
    for authorization, expected in ((b"", (401, "key_missing")), (read, (400, "bad_request"))):
        request = head + authorization + b"\r\n" + body + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        status, _, answer = send(base, request)
        assert (status, json.loads(answer)["code"]) == expected
    assert "ERROR" not in "".join(log.read_text() for log in logs.glob("gunicorn-*.log"))


def test_a_page_works_with_a_long_query(base: str) -> None:
    for path, expected in (("/login", 200), ("/nothing/here", 404)):
        status, headers, _ = send(
            base, b"GET %s?%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % (path.encode(), b"a" * 8000)
        )
        assert (status, headers["Content-Type"]) == (expected, "text/html; charset=utf-8")


# The service, werkzeug, gunicorn or a proxy reads each of these.
HEADERS = (
    "Accept", "Accept-Language", "Authorization", "Content-Length", "Content-Type", "Cookie", "Expect", "Forwarded",
    "From", "Host", "If-None-Match", "Origin", "Purpose", "Range", "Referer", "SCRIPT_NAME", "Sec-Fetch-Site",
    "Traceparent", "Transfer-Encoding", "Upgrade", "User-Agent", "X-Api-Key", "X-Correlation-Id", "X-Forwarded-For",
    "X-Forwarded-Host", "X-Forwarded-Prefix", "X-Forwarded-Proto", "X-Real-Ip", "X-Request-Id",
)  # fmt: skip


def test_no_secret_is_in_a_log(unlimited: str, logs: Path) -> None:
    base = unlimited
    key = f"linkmgr_{TOKEN}"
    paths = [
        f"/login/{TOKEN}",
        f"//login/{TOKEN}",
        f"/login//{TOKEN}",
        f"/login%2F{TOKEN}",
        f"/login%252F{TOKEN}",
        f"/%6Cogin/{TOKEN}",
        f"/%6C%6f%67%69%6E%2f{TOKEN}",
        f"/login/%5A{TOKEN[1:]}",
        f"/login/{TOKEN[:20]}%20{TOKEN[20:]}",
        f"/LOGIN/{TOKEN}?next={TOKEN}",
        f"/api/account?key={key}&short=hidden",
        f"/api/{key}",
    ]
    for path in paths:
        send(base, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        send(base, f"GET {path} HTTP/9.9\r\n\r\n".encode())
        send(base, f"GET {path} with spaces HTTP/1.1\r\n\r\n".encode())
    send(base, f"GET / HTTP/1.1\r\nAuthorization : Bearer {key}\r\n\r\n".encode())
    send(base, f"GET / HTTP/1.1\r\nAuthorization Bearer {key}\r\n\r\n".encode())
    for name in HEADERS:
        for secret in (key, TOKEN, f"Bearer {key}", f"https://go.example.org/login/{TOKEN}"):
            for line in (f"{name}: {secret}", f"{name}{secret}: 1"):
                request = f"GET /api/account HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{line}\r\n\r\n"
                send(base, request.encode())
    for method in (f"{key[:20].upper()}", TOKEN):
        send(base, f"{method} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    send(base, b"GET /healthz?hidden HTTP/1.1\r\nConnection: close\r\n\r\n")
    lines = "".join(log.read_text() for log in logs.glob("gunicorn-*.log")).splitlines()
    assert any('"path":"/login/-"' in line for line in lines)
    assert any('"path":"/healthz","status":200,' in line for line in lines)
    assert any("Invalid request from ip=" in line for line in lines)
    assert [line for line in lines if TOKEN[1:20] in line or TOKEN[21:] in line] == []
    assert [line for line in lines if "hidden" in line and "Invalid" not in line] == []


@pytest.mark.parametrize(
    ("framing", "body", "expected"),
    [
        (b"Transfer-Encoding: chunked", chunk(PIXEL) + chunk(b" " * (LARGEST - len(PIXEL))) + chunk(b""), 200),
        (b"Transfer-Encoding: chunked", chunk(PIXEL) + chunk(b" " * LARGEST) + chunk(b"garbage") + chunk(b""), 413),
        (b"Transfer-Encoding: chunked", chunk(PIXEL) + b"zz\r\n", 400),
        (b"Transfer-Encoding: chunked", chunk(PIXEL), 400),
        (b"Content-Length: %d" % len(PIXEL), PIXEL, 200),
        (b"Content-Length: %d" % (len(PIXEL) + 1), PIXEL, 400),
        (b"Content-Length: %d" % (LARGEST + 1), PIXEL + b" " * (LARGEST + 1 - len(PIXEL)), 413),
    ],
    ids=["chunks", "long", "malformed chunk", "chunks without an end", "whole", "cut", "too long"],
)
def test_a_body_is_read_completely_or_rejected(
    base: str, alice: Client, framing: bytes, body: bytes, expected: int
) -> None:
    for path in (b"/api/pixel/add", b"/login"):
        head = b"POST %s HTTP/1.1\r\nAuthorization: Bearer %s\r\n" % (path, str(alice.key).encode())
        kind = b"application/json" if b"api" in path else b"application/x-www-form-urlencoded"
        head += b"Host: localhost\r\nConnection: close\r\nContent-Type: %s\r\n%s\r\n\r\n" % (kind, framing)
        with socket.create_connection(("127.0.0.1", urlsplit(base).port or 0), timeout=60) as connection:
            connection.sendall(head + body)
            connection.shutdown(socket.SHUT_WR)
            status = int(connection.makefile("rb").readline().split()[1])
        assert status == expected or (path == b"/login" and expected == 200 and status < 500)
