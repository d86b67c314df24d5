"""Clients of exports that do not read to the end, against gunicorn."""

import http.client
import socket
from collections.abc import Callable
from contextlib import closing
from urllib.parse import urlsplit

from tests.conftest import MANY, Client
from tests.support.factories import Sql
from tests.support.targets import wait_until

PATH = "/api/urls/export?format=jsonl"


def test_clients_that_go_away_free_their_threads(serve: Callable[..., str], alice: Client, sql: Sql) -> None:
    base = serve("--workers", "1", "--threads", "4", rate_limit=MANY)
    sql(
        """
        INSERT INTO links (user_id, alias, url, description)
        SELECT %(owner)s, 'link-' || n, 'https://example.com/' || n, repeat('x', 1000) FROM generate_series(1, 8000) n
        RETURNING 1
        """,
        owner=alice.id,
    )
    address = (urlsplit(base).hostname or "", urlsplit(base).port or 0)
    head = f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {alice.key}\r\n\r\n".encode()
    for _ in range(4):
        with closing(socket.create_connection(address, timeout=20)) as connection:
            connection.sendall(head)
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        wait_until(lambda: status(address, alice) == 200)


def status(address: tuple[str, int], client: Client) -> int:
    """Return the status of an export that is read to the end."""
    with closing(http.client.HTTPConnection(*address, timeout=60)) as connection:
        connection.request("GET", PATH, headers={"Authorization": f"Bearer {client.key}"})
        answer = connection.getresponse()
        lines = answer.read().count(b"\n")
        assert answer.status == 503 or lines == 8_000
        return answer.status
