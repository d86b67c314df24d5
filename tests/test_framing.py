"""The worker and h11 accept the same framings, and find the same body and the same next request (deploy/worker.py)."""

import random
import re
import socket
from typing import Any

import h11
import pytest
from gunicorn.config import Config
from gunicorn.http import Request, errors
from gunicorn.http.unreader import IterUnreader

from deploy import framing
from tests.support.raw_http import HEAD, chunk, opened

CONFIG, REFUSED = Config(), object()
NEXT = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
FRAMINGS = [
    *(chunk(b"x" * size) + chunk(b"") for size in (1, 10, 16, 100)),
    chunk(b""),
    b"A\r\n0123456789\r\n0\r\n\r\n",
    b"00000000000000000001\r\nx\r\n0\r\n\r\n",
    b"000000000000000000001\r\nx\r\n0\r\n\r\n",
    b"1\r\nx\r\n000\r\n\r\n",
    b"1;a\r\nx\r\n0;b=c;d=\"e;f\"\r\n\r\n",
    b"1 ;a=b\r\nx\r\n0\r\n\r\n",
    b"1;a\nb\r\nx\r\n0\r\n\r\n",
    b"1\nx\r\n0\r\n\r\n",
    b"1\r\nx\n0\r\n\r\n",
    b"1\r\nx0\r\n\r\n",
    b"1\r\nxy\r\n0\r\n\r\n",
    b"2\r\nx\r\n0\r\n\r\n",
    b" 1\r\nx\r\n0\r\n\r\n",
    b"+1\r\nx\r\n0\r\n\r\n",
    b"-1\r\nx\r\n0\r\n\r\n",
    b"0x1\r\nx\r\n0\r\n\r\n",
    b"1_0\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n",
    b"\xd9\xa1\r\nx\r\n0\r\n\r\n",
    b"\r\n1\r\nx\r\n0\r\n\r\n",
    b"\r\n",
    b"g\r\n",
    b"1\r\nx\r\n0\r\nX-Trailer: y\r\nZ: \r\n\r\n",
    b"1\r\nx\r\n0\r\nmalformed\r\n\r\n",
    b"1\r\nx\r\n0\r\nX : y\r\n\r\n",
]  # fmt: skip
# h11 accepts these. A second way to end a line, or to read it, is a way to smuggle requests.
STRICTER = [
    b"1 \r\nx\r\n0\r\n\r\n",
    b"1;a\rb\r\nx\r\n0\r\n\r\n",
    b"1\r\nx\r\n0\r\n\n",
    b"1\r\nx\r\n0\r\nX: y\nContent-Length: 3\r\n\r\n",
    b"1\r\nx\r\n0\r\nX: y\r\n folded\r\n\r\n",
]
HEAD_OF_CHUNKS = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def ours(data: bytes, pieces: list[int]) -> object:
    """Return the body and what follows it, None if it has not ended, or REFUSED."""
    request = Request(CONFIG, IterUnreader([HEAD_OF_CHUNKS]), ("127.0.0.1", 1))
    received, body = bytearray(), bytearray()
    taking = framing.take_chunks(received, body, request.parse_headers)
    has_ended = False
    try:
        for start, end in zip([0, *pieces], [*pieces, len(data)], strict=True):
            received += data[start:end]
            has_ended = has_ended or next(taking, True)
    except (errors.ParseException, OverflowError):
        return REFUSED
    return (bytes(body), bytes(received)) if has_ended else None


def theirs(data: bytes) -> object:
    connection, body = h11.Connection(h11.SERVER), b""
    connection.receive_data(HEAD_OF_CHUNKS + data)
    try:
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                return None
            body += event.data if isinstance(event, h11.Data) else b""
    except h11.RemoteProtocolError:
        return REFUSED
    return body, connection.trailing_data[0]


def served(base: str, sent: bytes) -> list[bool]:
    """Return True for each request that the service understands, and False for one that it refuses as malformed."""
    with opened(base) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.makefile("rb").read()
    return [status in (b"200", b"401") for status in re.findall(rb"HTTP/1\.[01] ([2-5]..) ", answer)]


def understood(sent: bytes) -> list[bool]:
    """Return the same of h11."""
    connection, found = h11.Connection(h11.SERVER), []
    connection.receive_data(sent)
    connection.receive_data(b"")
    try:
        while not isinstance(event := connection.next_event(), h11.ConnectionClosed):
            if event is h11.PAUSED:
                connection.start_next_cycle()
            elif isinstance(event, h11.EndOfMessage):
                found.append(True)
                connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                connection.send(h11.EndOfMessage())
                if connection.our_state is h11.MUST_CLOSE:
                    break
    except h11.RemoteProtocolError:
        found.append(False)
    return found


@pytest.mark.parametrize("data", FRAMINGS + STRICTER)
def test_chunks_are_read_as_h11_reads_them_however_they_arrive(data: bytes) -> None:
    sent = data + NEXT
    expected = REFUSED if data in STRICTER else theirs(sent)
    assert ours(sent, []) == ours(sent, list(range(1, len(sent)))) == expected


def test_mutated_chunks_are_never_read_otherwise_than_h11_reads_them() -> None:
    """They may be refused, or not end, where h11 accepts them. What both accept has the same body and next request."""
    source = random.Random(1)  # noqa: S311 - the same in each run
    for _ in range(1500):
        sent = bytearray(source.choice(FRAMINGS + STRICTER) + NEXT)
        for _ in range(source.randrange(1, 4)):
            at = source.randrange(len(sent))
            sent[at : at + source.randrange(2)] = source.choice([b"\r", b"\n", b"\r\n", b"0", b"1", b";", b" ", b"\0"])
        data = bytes(sent)
        pieces = sorted(source.sample(range(len(data)), 3))
        found = ours(data, pieces)
        assert found == ours(data, []), data
        assert found in (theirs(data), REFUSED, None), data


@pytest.mark.services
def test_heads_frame_bodies_as_h11_reads_them(unlimited: str) -> None:
    """Compare the number of responses on a connection: a body that ends elsewhere would begin another request."""
    body = chunk(b"{}") + chunk(b"")
    length, chunked = b"Content-Length: %d\r\n" % len(body), b"Transfer-Encoding: chunked\r\n"
    for version in (b"1.0", b"1.1"):
        for lines in (
            b"", length, chunked, length + chunked, chunked + length, length * 2, chunked * 2,
            length + b"Content-Length: 5\r\n", b"Content-Length: 5, 5\r\n", b"Content-Length: +5\r\n",
            b"Content-Length: \xb2\r\n", b"Content-Length: 0x5\r\n", b"Content-Length: \r\n",
            b"Transfer-Encoding: gzip, chunked\r\n", b"Transfer-Encoding: chunked, gzip\r\n",
            b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: CHUNKED\r\n", b"Transfer-Encoding: x\r\n",
            b"Transfer-Encoding : chunked\r\n", b" Transfer-Encoding: chunked\r\n", b"Transfer_Encoding: chunked\r\n",
            b"Transfer-Encoding:\x0bchunked\r\n", b"Transfer-Encoding: chunked\n", b"X: y\r\x00z\r\n" + chunked,
            b"Expect: 100-continue\r\n" + length, b"Expect: 100-continue\r\n" + chunked,
        ):  # fmt: skip
            sent = HEAD.replace(b"HTTP/1.1", b"HTTP/" + version) + lines + b"\r\n" + body + NEXT
            assert served(unlimited, sent) in (understood(sent), [False]), (version, lines)


class Searched(bytearray):
    """Bytes that count how many of them were searched."""

    number = 0

    def find(self, found: Any, start: Any = 0, /) -> int:  # type: ignore[override]
        self.number += len(self) - start
        return super().find(found, start)


def test_each_byte_of_the_framing_is_searched_a_few_times_however_it_arrives() -> None:
    received, sent = Searched(), 10_000
    taking = framing.take_chunks(received, bytearray(), lambda *_, **__: None)
    for byte in b"1;a=" + b"x" * sent:
        received.append(byte)
        assert next(taking, True) is False
    assert received.number < 5 * sent
