"""Forged request headers that change path, scheme, host or client for some server or library."""

import re
from collections.abc import Callable

import pytest

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.raw_http import send

pytestmark = pytest.mark.services

EVIL = "evil.example"
# Known to gunicorn, werkzeug, ProxyFix or other servers and frameworks, in both spellings where CGI maps them alike.
FORGED = [
    *((name, value) for name in ("SCRIPT_NAME", "SCRIPT-NAME", "X-Script-Name") for value in ("/", "/evil", "/api")),
    *((name, "/healthz") for name in ("PATH_INFO", "PATH-INFO", "X-Original-Url", "X-Rewrite-Url", "RAW_URI")),
    *((name, "/evil") for name in ("X-Forwarded-Prefix", "X-Forwarded-Path", "X_Forwarded_Prefix", "Request-Uri")),
    *((name, EVIL) for name in ("X-Forwarded-Host", "X-Forwarded-Server", "X-Host", "X-Original-Host", "HTTP_HOST")),
    *((name, EVIL) for name in ("SERVER_NAME", "Server-Name", "X_Forwarded_Host", "Proxy", "HTTP-HOST")),
    *((name, "443") for name in ("X-Forwarded-Port", "SERVER_PORT", "Server-Port")),
    *((name, "https") for name in ("X-Forwarded-Proto", "X-Forwarded-Scheme", "X-Scheme", "X-Url-Scheme")),
    *((name, "https") for name in ("wsgi.url_scheme", "X_Forwarded_Proto", "X-Forwarded-Protocol")),
    *((name, "on") for name in ("X-Forwarded-Ssl", "Front-End-Https", "HTTPS")),
    ("X-Forwarded-Protocol", "ssl"),
    ("Forwarded", f"for=192.0.2.1;host={EVIL};proto=https"),
    *((name, "192.0.2.1") for name in ("X-Forwarded-For", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "REMOTE_ADDR")),
    *((name, "admin") for name in ("REMOTE_USER", "Remote-User", "X-Remote-User", "X-Forwarded-User")),
    *((name, "DELETE") for name in ("X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "REQUEST_METHOD")),
    ("Upgrade", "websocket"),
    ("QUERY_STRING", "order=click"),
    ("PROXY_PROTOCOL", "TCP4"),
]
# Headers that gunicorn evaluates together: a contradiction is a 400 where it trusts them.
PAIRS = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Ssl", "off")]
Answer = tuple[int, str | None, bytes]  # status, Location, body

FORM = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 0\r\n"


@pytest.fixture
def requests(alice: Client, sql: Sql) -> list[bytes]:
    """Return the starts of requests whose responses depend on path, scheme, host and client."""
    link_id = factories.link(sql, alice.id, url="https://example.com/page")
    [link] = sql("SELECT alias FROM links WHERE id = %(id)s", id=link_id)
    paths = ("/", f"/{link['alias']}", "/evil", "/healthz", "/account", "/api/account", "/api/nothing")
    gets = [f"GET {path} HTTP/1.1\r\nHost: {{host}}\r\n".encode() for path in paths]
    return [*gets, b"POST /login HTTP/1.1\r\nHost: {host}\r\nOrigin: https://{host}\r\n" + FORM]


def answers(base: str, requests: list[bytes], *headers: tuple[str, str]) -> list[Answer]:
    host = base.partition("//")[2].encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers).encode()
    found = []
    for start in requests:
        status, received, body = send(base, start.replace(b"{host}", host) + lines + b"Connection: close\r\n\r\n")
        found.append((status, received.get("Location"), re.sub(rb'nonce="[^"]+"|"request_id":"[^"]+"', b"", body)))
    return found


def test_no_header_changes_path_scheme_host_or_client(
    serve: Callable[..., str], requests: list[bytes], sql: Sql
) -> None:
    base = serve("--workers", "1", rate_limit="1000000 per minute")
    plain = answers(base, requests)
    assert [answer[0] for answer in plain] == [302, 302, 404, 200, 303, 401, 401, 403]
    for name, value in FORGED:
        assert answers(base, requests, (name, value)) == plain, name
    assert answers(base, requests, *PAIRS) == plain
    assert {row["bucket"] for row in sql("SELECT bucket FROM rate_windows")} == {"address:127.0.0.1"}


def test_of_a_trusted_proxy_only_the_address_and_the_scheme_are_used(
    serve: Callable[..., str], requests: list[bytes], sql: Sql
) -> None:
    base = serve("--workers", "1", rate_limit="1000000 per minute", trusted_proxies="1")
    ignored = [header for header in FORGED if header[0] not in ("X-Forwarded-For", "X-Forwarded-Proto")]
    plain = answers(base, requests)
    for name, value in ignored:
        assert answers(base, requests, (name, value)) == plain, name
    *others, signed_in = answers(base, requests, ("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "192.0.2.1"))
    assert others == plain[:-1]
    assert signed_in[0] == 401, "by https the origin is ours"
    assert sql("SELECT 1 FROM rate_windows WHERE bucket = 'address:192.0.2.1'")
