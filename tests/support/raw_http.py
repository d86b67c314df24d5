"""HTTP as bytes on a socket, for requests that no client library would send."""

import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

TOKEN = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE"
LARGEST = 64 * 1024
PIXEL = b'{"type": "bing", "name": "n", "tag": "t"}'
DEADLINE = 10
BOUND = 6.0  # seconds within which other requests are answered; blocked ones would wait for the deadline
HEAD = b"POST /api/pixel/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BEGINNINGS = {
    "a body": HEAD + b"Content-Length: 10\r\n\r\n{",
    "headers": HEAD + b"X-Slow: ",
    "a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n400\r\n{",
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    "a trailer": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX-Slow: ",
    "a body after 100 Continue": HEAD + b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n{",
}


def send(base: str, request: bytes) -> tuple[int, dict[str, str], bytes]:
    with socket.create_connection(("127.0.0.1", urlsplit(base).port or 0), timeout=60) as connection:
        connection.sendall(request)
        answer = connection.makefile("rb").read()
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in lines), body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def opened(base: str, receive_buffer: int = 0) -> socket.socket:
    client = socket.socket()
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.settimeout(DEADLINE + 5)
    client.connect(("127.0.0.1", urlsplit(base).port or 0))
    return client


def seconds_for(url: str) -> float:
    began = time.monotonic()
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.status == 200
        answer.read()
    return time.monotonic() - began


@contextmanager
def many(base: str, beginning: bytes, number: int, *, receive_buffer: int = 0) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(opened(base, receive_buffer)) for _ in range(number)]
        for each in sockets:
            each.sendall(beginning)
        yield sockets


def responses(connection: socket.socket, number: int) -> list[tuple[int, bytes]]:
    """Read responses with a Content-Length. 100 Continue has none."""
    found = []
    with connection.makefile("rb") as file:
        for _ in range(number):
            status, length = int(file.readline().split()[1]), 0
            while (line := file.readline()) != b"\r\n":
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            found.append((status, file.read(length)))
    return found
