"""Attacks by one user with what takes long: slow readers and uploads, passwords, searches and slow services; alone and
combined."""

import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from itertools import count
from urllib.parse import urlencode, urlsplit

from linkmgr import create_app
from linkmgr.core.web import passwords
from linkmgr.features.imports import requests
from tests.faults.beside import Attack
from tests.faults.deployment import TIMEOUT, Deployment, call, settings
from tests.faults.one_user import SECONDS, add_links, compile_templates, cookie, repeat
from tests.support.foreign import answering, server
from tests.support.raw_http import many

_CLIENTS, _READERS, _SEARCHES, _ADDRESSES = 20, 10, 300, 4
_FAILED = """
    WITH added AS (
        INSERT INTO imports (user_id, state, source, on_conflict, finished)
        VALUES (%(user_id)s, 'done', 'shlink', 'skip', now()) RETURNING id),
    failed AS (
        INSERT INTO import_rows (user_id, import_id, number, place, file, name, lines, raw, code, message)
        SELECT %(user_id)s, id, n, 0, 'links', '', 1, json_build_object('URL', repeat('x', 100000)), 'invalid', ''
          FROM added, generate_series(1, 150) n)
    SELECT id FROM added
"""
_EVENTS = """
    WITH webhook AS (
        INSERT INTO webhooks (user_id, name, events, active, secret_ciphertext)
        VALUES (%(user_id)s, 'Large', '{}', false, '') RETURNING id),
    added AS (
        INSERT INTO events (user_id, type, data, created)
        SELECT %(user_id)s, 'link.created', json_build_object('id', n, 'url', repeat('x', 18900)), now()
          FROM generate_series(1, 1000) n RETURNING number)
    INSERT INTO deliveries (webhook_id, number, state) SELECT id, number, 'failed' FROM webhook, added
    RETURNING webhook_id
"""
_VISITS = """
    INSERT INTO visits (tracked_id, at, visitor, country, referrer, browser, os, utm_source, utm_campaign)
    SELECT %(link)s, now(), '', '', '', '', '', label, label
      FROM generate_series(1, 10000) n, LATERAL (SELECT rpad(n::text, 100, '\U0001f600')) AS labels (label)
"""


def _held(target: Deployment, head: str, body: bytes = b"", *, number: int = _CLIENTS) -> None:
    """Send a request from many clients, which then read 1 KiB at a time."""
    lines = f"{head}\r\nHost: localhost\r\nAuthorization: Bearer {target.key}\r\n\r\n"
    with many(target.base, lines.encode() + body, number, receive_buffer=4096) as clients:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for client in clients:
                with suppress(OSError):
                    client.settimeout(0.05)
                    client.recv(1024)


def _failed_rows(target: Deployment) -> None:
    [(import_id,)] = target.database.query(_FAILED, user_id=target.user_id)
    _held(target, f"GET /api/imports/{import_id}/errors HTTP/1.1\r\nAccept: application/json")


def _largest_responses(target: Deployment) -> None:
    """Read pages of events and deliveries, which would have 19 MB, and statistics of 8 MB."""
    webhook, link = target.database.query(_EVENTS, user_id=target.user_id)[0][0], target.link(secrets.token_hex(8))
    target.database.query("SELECT create_partition(now())")
    target.database.query(_VISITS, link=link)
    paths = (
        "/api/events?limit=1000",
        f"/api/webhook/{webhook}/deliveries?limit=1000",
        f"/api/stats?ids={link}&by=utm_source,utm_campaign&metrics=clicks,visitors&limit=10000",
    )
    with ThreadPoolExecutor(len(paths)) as readers:
        list(readers.map(lambda path: _held(target, f"GET {path} HTTP/1.1", number=_READERS), paths))


def _uploads(target: Deployment) -> None:
    head = "POST /api/imports?dry_run=1 HTTP/1.1\r\nContent-Type: text/csv\r\nContent-Length: 9000000"
    _held(target, head, b"x" * 70_000)


def _correct_passwords(target: Deployment) -> None:
    alias = secrets.token_hex(8)
    link = target.link(alias)
    hashed = passwords.hasher.hash("open sesame")
    target.database.query(
        "UPDATE links SET password_hash = %(hashed)s WHERE id = %(link)s RETURNING id", hashed=hashed, link=link
    )
    form = urlencode({"password": "open sesame"}).encode()
    kind = "application/x-www-form-urlencoded"
    repeat(_CLIENTS, partial(call, target, "POST", f"/{alias}", form, Content_Type=kind))


def _sign_ins(target: Deployment) -> None:
    """Sign in with the correct password from several IP addresses."""
    changed = "UPDATE users SET password_hash = %(hashed)s WHERE id = %(user_id)s RETURNING email"
    hashed = passwords.hasher.hash("open sesame")
    [(email,)] = target.database.query(changed, hashed=hashed, user_id=target.user_id)
    form, numbers = urlencode({"email": email, "password": "open sesame"}), count()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    def sign_in() -> None:
        source = f"127.0.0.{next(numbers) % _ADDRESSES + 2}", 0
        with closing(HTTPConnection(urlsplit(target.base).netloc, timeout=TIMEOUT, source_address=source)) as client:
            client.request("POST", "/login", form, headers)
            client.getresponse().read()

    repeat(_CLIENTS, sign_in)


def _searches(target: Deployment) -> None:
    add_links(target)
    session = cookie(target)
    compile_templates(target, "/console/links", session)
    with ThreadPoolExecutor(_CLIENTS) as clients:
        list(clients.map(lambda n: call(target, "GET", f"/console/links?q={n % 10}", Cookie=session), range(_SEARCHES)))


def _slow_services(target: Deployment) -> None:
    """Import from a service that responds after 9 s, three times at once."""

    def respond(request: BaseHTTPRequestHandler) -> None:
        time.sleep(9)
        answering(b"{}")(request)

    with server(respond) as port:
        with create_app(**settings(target.database)).app_context():
            for _ in range(3):
                requests.add(target.user_id, requests.Service("kutt", f"http://127.0.0.1:{port}", "token"), "skip")
        time.sleep(SECONDS)


_KINDS: tuple[Callable[[Deployment], None], ...] = (
    _failed_rows, _uploads, _correct_passwords, _searches, _slow_services,
)  # fmt: skip


def _combined(target: Deployment) -> None:
    with ThreadPoolExecutor(len(_KINDS)) as attacks:
        list(attacks.map(lambda attack: attack(target), _KINDS))


ATTACKS = (
    Attack(f"{_CLIENTS} slow readers of failed rows", _failed_rows),
    Attack(f"{_CLIENTS} slow uploads", _uploads),
    Attack(f"{_CLIENTS} clients send the password of a link", _correct_passwords),
    Attack(f"{_SEARCHES} searches of the console over 100,000 links", _searches),
    Attack("three imports from a service that takes 9 s", _slow_services),
    Attack("all five at once", _combined),
    Attack(f"{_READERS} slow readers each of events, deliveries and statistics", _largest_responses),
    Attack(f"{_CLIENTS} clients sign in from {_ADDRESSES} addresses", _sign_ins),
)
