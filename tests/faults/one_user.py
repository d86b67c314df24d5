"""Attacks by one user that fill the disk or occupy what all users share."""

import gzip
import http.client
import io
import json
import secrets
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from urllib.parse import urlsplit

from linkmgr import create_app
from linkmgr.core.web.session_store import new_link
from linkmgr.features.webhooks import outbox
from tests.faults.attacks import add_logo
from tests.faults.beside import MAX_STORED, Attack, until
from tests.faults.deployment import TARGET, TIMEOUT, Deployment, answer, call, settings
from tests.support.foreign import answering, server
from tests.support.raw_http import chunk, many
from tests.support.receivers import receiving
from tests.support.targets import FIREFOX

SECONDS = 15  # duration of attacks that repeat requests
MAX_IMPORTS = 60  # seconds until imports that still run are cancelled
_SIZE = 20 << 20  # bytes of a file
_PACKED = 16_000  # rows of a file
_LINKS = 100_000
_SLOW = 13.5  # seconds that a slow receiver takes
_ADD = """
    WITH campaign AS (
        INSERT INTO campaigns (user_id, name, public) VALUES (%(user_id)s, 'Many', true) RETURNING id),
    added AS (
        INSERT INTO links (user_id, campaign, alias, url, description, geotarget)
        SELECT %(user_id)s, campaign.id, 'beside-' || %(user_id)s || '-' || n, %(url)s || n, repeat('x', 200),
               %(locations)s
          FROM campaign, generate_series(1, %(number)s) n
        RETURNING id, campaign),
    counted AS (
        INSERT INTO totals (tracked_id, clicks, visitors) SELECT id, id %% 97, id %% 89 FROM added)
    SELECT campaign, array_agg(id) FROM added GROUP BY campaign
"""
_SPACING = 0.9  # seconds between two requests of checks to a server
_NAMES = """
    WITH added AS (
        INSERT INTO links (user_id, alias, url)
        SELECT %(user_id)s, 'names-' || %(user_id)s || '-' || n, format('http://n%%s.localhost:%%s/', n, %(port)s)
          FROM generate_series(1, 50) n
        RETURNING id, user_id)
    INSERT INTO link_checks (link_id, user_id) SELECT id, user_id FROM added
"""
_DOMAIN = "INSERT INTO domains (user_id, scheme, host) VALUES (%(user_id)s, 'https', %(host)s) RETURNING id"
_ANSWERS = """
    INSERT INTO idempotency_keys (user_id, key, response)
    SELECT %(user_id)s, 'before-' || n, (SELECT string_agg(md5((n * part)::text), '')
                                         FROM generate_series(1, 500) part)
      FROM generate_series(1, 2100) n
"""


def repeat(number: int, work: Callable[[], object]) -> None:
    """Repeat requests from a number of clients for SECONDS."""
    end = time.monotonic() + SECONDS

    def client(_: int) -> None:
        while time.monotonic() < end:
            work()

    with ThreadPoolExecutor(number) as clients:
        list(clients.map(client, range(number)))


# --- files to import


def _import(target: Deployment, *files: bytes) -> None:
    """Preview and import the files. Cancel those that run for too long."""
    end = time.monotonic() + MAX_IMPORTS
    begun = []
    for file in files:
        call(target, "POST", "/api/imports?dry_run=1", file)
        while (sent := call(target, "POST", "/api/imports", file))[
            0
        ] == 409 and time.monotonic() < end:  # three at a time
            time.sleep(0.2)
        if sent[0] == 200:
            begun.append(json.loads(sent[1])["id"])
    for number in begun:
        path = f"/api/imports/{number}"
        while answer(target, "GET", path)["data"]["state"] in ("queued", "running") and time.monotonic() < end:
            time.sleep(0.2)
        call(target, "DELETE", path)


def _import_lines(target: Deployment) -> None:
    head = b"Long URL,Title\n"
    plain = [head + b"\n" * _SIZE, head + b";\n" * (_SIZE // 2), b"-- \n" + b";" * _SIZE, head + b"x" * _SIZE]
    _import(target, *plain, *map(gzip.compress, plain))


def _import_memory(target: Deployment) -> None:
    columns = ",".join(f"c{number} int" for number in range(11_000))
    tables = "\n".join(f"CREATE TABLE t{number} ({columns});" for number in range(150)).encode()
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("links.jsonl", "w") as file:
        for _ in range(1024):
            file.write(b"\n" * (1 << 20))
    _import(target, gzip.compress(tables), tables, zipped.getvalue())


def _import_packed(target: Deployment) -> None:
    """Import files of about 4 MiB that unpack to 200 times as much, at once."""
    packed = io.BytesIO()
    with gzip.open(packed, "wt", 6) as file:
        file.write("Long URL,Title,Note\n")
        for number in range(_PACKED):
            file.write(f"{TARGET}{number},One,{secrets.token_hex(80)}{'x' * 50_000}\n")
    _import(target, *[packed.getvalue()] * 3)


# --- requests


def _fill_disk(target: Deployment) -> None:
    """Try to store more than the bound of events of 19 KB, of answers to an Idempotency-Key, and of failed rows."""
    answer(target, "POST", "/api/webhooks", {"name": "Events", "events": ["*"]})
    locations = {f"country {number}": TARGET + "x" * 60 for number in range(190)}
    ids = add_links(target, 1000, json.dumps(locations))[1]
    end = time.monotonic() + MAX_IMPORTS
    changes = iter(range(outbox.MAX_BYTES // (100 * 19_000) + 10))
    while time.monotonic() < end and (number := next(changes, None)) is not None:
        data = {"description": f"change {number}"}
        call(target, "PUT", "/api/urls/bulk", {"ids": ids[:100], "data": data})
    target.database.query(_ANSWERS, user_id=target.user_id)
    for number in range(1000):
        call(target, "POST", "/api/pixel/add", {"type": "x" * 1000}, Idempotency_Key=f"attack-{number}")
    failing = "Long URL,Title\n" + f"no-url,{'x' * 3000}\n" * 6000
    _import(target, *[failing.encode()] * 3)
    until(lambda: target.database.query("SELECT count(*) FROM outbox") == [(0,)])


def _slow_receivers(target: Deployment) -> None:
    with receiving() as slow:
        slow.before = lambda _: time.sleep(_SLOW)
        for number in range(20):
            answer(
                target, "POST", "/api/webhooks", {"name": f"{number}", "url": f"{slow.url}/{number}", "events": ["*"]}
            )
        for number in range(50):
            answer(target, "POST", "/api/url/add", {"url": f"{TARGET}{secrets.token_hex(8)}-{number}"})
        time.sleep(2 * _SLOW)


def add_links(target: Deployment, number: int = _LINKS, locations: str = "{}") -> tuple[int, list[int]]:
    """Return the id of a public campaign and those of its links."""
    values = {"user_id": target.user_id, "url": TARGET, "number": number, "locations": locations}
    [(campaign_id, ids)] = target.database.query(_ADD, **values)
    return campaign_id, ids


def cookie(target: Deployment) -> str:
    with create_app(**settings(target.database)).app_context():
        path = urlsplit(new_link(target.user_id)).path
    with closing(http.client.HTTPConnection(urlsplit(target.base).netloc, timeout=TIMEOUT)) as connection:
        connection.request("POST", path, headers={"Origin": target.base, "Sec-Fetch-Site": "same-origin"})
        cookies = connection.getresponse().headers.get_all("Set-Cookie", [])
        return "; ".join(cookie.partition(";")[0] for cookie in cookies)


def compile_templates(target: Deployment, path: str, session: str) -> None:
    """Open a page in each worker, whose first one takes half a second."""
    opened = [call(target, "GET", path, Cookie=session)[0] for _ in range(10)]
    assert opened == [200] * 10, opened


def _large_pages(target: Deployment) -> None:
    campaign_id, _ = add_links(target)
    paths = (f"/console/campaigns/{campaign_id}", f"/u/user-{target.user_id}/list-{campaign_id}")
    session = cookie(target)
    for path in paths:
        compile_templates(target, path, session)
    for path in paths:
        repeat(8, partial(call, target, "GET", path, Cookie=session))


def _slow_exports(target: Deployment) -> None:
    add_links(target)
    head = (
        f"GET /api/urls/export?format=jsonl HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {target.key}\r\n\r\n"
    )
    with many(target.base, head.encode(), 20, receive_buffer=4096) as clients:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for client in clients:
                with suppress(OSError):
                    client.settimeout(0.05)
                    client.recv(1024)


def _unfinished_bodies(target: Deployment) -> None:
    size = 2 << 20
    head = f"POST /api/urls/bulk HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {target.key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(240):
            [client] = stack.enter_context(many(target.base, head.encode(), 1))
            with suppress(OSError):  # it closes those that have waited longest
                client.settimeout(1)
                client.sendall(b" " * (size - 1))
        time.sleep(SECONDS)


def _framed_bodies(target: Deployment) -> None:
    """Send bodies that are nearly all framing, without a key: chunks of one byte, and extensions of 4 MiB."""
    head = b"POST /api/urls/bulk HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    for body, number in ((chunk(b"x") * 650_000, 8), (b"1;" + b"x" * (4 << 20), 400)):
        with many(target.base, head, number) as clients:
            for client in clients:
                with suppress(OSError):  # it refuses what is too large
                    client.settimeout(1)
                    client.sendall(body)


def _copied_logos(target: Deployment) -> None:
    """Store each of 30 logos in 100 codes."""
    for _ in range(30):
        code = {"type": "text", "data": "x", "logo": add_logo(target)}
        call(target, "POST", "/api/qr/bulk", {"qrs": [code] * 100})


def _many_names(target: Deployment) -> None:
    """Let 50 links be checked, whose hosts are all the same server."""
    began = list[float]()

    def note(request: BaseHTTPRequestHandler) -> None:
        began.append(time.monotonic())
        answering(b"")(request)

    with server(note) as port:
        target.database.query(_NAMES, user_id=target.user_id, port=port)
        until(lambda: began)
        time.sleep(SECONDS)
        assert len(began) > SECONDS / 2
        assert all(after - before > _SPACING for before, after in pairwise(began)), began


def _junk_paths(target: Deployment) -> None:
    """Request 5,000 random paths of a branded domain, and another one often enough to be listed first."""
    host = f"{secrets.token_hex(4)}.example.org"
    [(domain_id,)] = target.database.query(_DOMAIN, user_id=target.user_id, host=host)

    def ask(number: int) -> None:
        path = "/sumer" if number % 200 == 0 else f"/{secrets.token_hex(4)}"
        call(target, "GET", path, Host=host, User_Agent=FIREFOX)

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(ask, range(5000)))

    def listed() -> dict[str, int]:
        rows = answer(target, "GET", f"/api/domain/{domain_id}/missing?limit=2")["data"]["missing"]
        return {row["path"]: row["visits"] for row in rows}

    until(lambda: sum(listed().values()) > 4000)
    assert listed().get("/sumer", 0) > 20, listed()


ATTACKS = (
    Attack("three imports of 4 MiB with 800 MiB of rows", _import_packed, max_rows=96 << 20),
    Attack("8 bodies in chunks of one byte, 400 with chunk extensions of 4 MiB, without a key", _framed_bodies),
    Attack("30 bulk requests with a logo in each of 100 codes", _copied_logos),
    Attack("events, answers and failed rows fill the disk", _fill_disk, MAX_STORED),
    Attack("previews and imports of 20 MiB of blank lines, `;` and one line", _import_lines),
    Attack("SQL tables of 11,000 columns, a zip of 1 MiB with 1 GiB of lines", _import_memory),
    Attack("20 webhooks whose receiver takes 13.5 s", _slow_receivers),
    Attack("a campaign's page and public list with 100,000 links", _large_pages),
    Attack("20 exports whose clients read slowly", _slow_exports),
    Attack("5,000 requests of random paths of a branded domain", _junk_paths),
    Attack("checks of 50 links to a server with 50 names", _many_names),
    Attack("240 connections with unfinished bodies of 2 MiB", _unfinished_bodies),
)
