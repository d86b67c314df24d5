"""Attacks by one user with what takes long: slow readers and uploads, passwords, searches and slow services; alone and
combined."""

import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlencode

from linkmgr import create_app
from linkmgr.core.web import passwords
from linkmgr.features.imports import requests
from tests.faults.beside import Attack
from tests.faults.deployment import Deployment, call, settings
from tests.faults.one_user import SECONDS, add_links, compile_templates, cookie, repeat
from tests.support.foreign import answering, server
from tests.support.raw_http import many

_CLIENTS, _SEARCHES = 20, 300
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


def _held(target: Deployment, head: str, body: bytes = b"") -> None:
    """Send a request from many clients, which then read 1 KiB at a time."""
    lines = f"{head}\r\nHost: localhost\r\nAuthorization: Bearer {target.key}\r\n\r\n"
    with many(target.base, lines.encode() + body, _CLIENTS, receive_buffer=4096) as clients:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for client in clients:
                with suppress(OSError):
                    client.settimeout(0.05)
                    client.recv(1024)


def _failed_rows(target: Deployment) -> None:
    [(import_id,)] = target.database.query(_FAILED, user_id=target.user_id)
    _held(target, f"GET /api/imports/{import_id}/errors HTTP/1.1\r\nAccept: application/json")


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
)
