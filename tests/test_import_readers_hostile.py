"""Import files that are made to cost more time or memory than their size explains."""

from collections.abc import Callable
from time import thread_time

import pytest

from tests.test_import_readers_bytes import outcome

HEADER = b"Long URL,Short code,Title,Tags\n"
VALUES = b"INSERT INTO yourls_url VALUES ('a','https://b',NULL,'2026-01-01','',1);\n"
LINK = '{"longUrl":"https://example.com","shortCode":"a"'
ALIAS = b'[{"longUrl":"https://example.com","shortCode":"'
GROWTH = 8  # of the input; work that grows with its square grows 64 times
LIMIT = 28


def seconds(content: bytes) -> float:
    """Return the processor time of this thread, which other processes on the machine do not change."""
    start = thread_time()
    outcome(content)
    return thread_time() - start


def check_growth(content: Callable[[int], bytes], size: int) -> None:
    small, large = (min(seconds(content(number)) for _ in range(3)) for number in (size, GROWTH * size))
    assert large < LIMIT * small


@pytest.mark.parametrize(
    ("start", "repeated", "end"),
    [
        pytest.param(VALUES + b"CREATE TABLE a (", b"\n", b");", id="lines of CREATE TABLE"),
        pytest.param(VALUES + b"CREATE TABLE a (", b"a \n", b");", id="names in CREATE TABLE"),
        pytest.param(VALUES + b"CREATE TABLE a", b" ", b"!;", id="spaces of CREATE TABLE"),
        pytest.param(VALUES + b"INSERT INTO a", b" ", b"!;", id="spaces of INSERT"),
        pytest.param(VALUES + b"INSERT INTO ", b"a", b"!;", id="a name in INSERT"),
        pytest.param(VALUES + b"INSERT INTO a (b) VALUES", b" ", b"!;", id="spaces of VALUES"),
        pytest.param(VALUES + b"INSERT ", b"IGNORE ", b"!;", id="words of INSERT"),
        pytest.param(b"INSERT INTO yourls_url VALUES (", b" ", b"!;", id="spaces of a row"),
        pytest.param(b"INSERT INTO yourls_url VALUES ('", b"''", b"!;", id="quotation marks of a row"),
        pytest.param(b"INSERT INTO yourls_url VALUES ('", b"\\'", b"!;", id="escapes of a row"),
        pytest.param(b"INSERT INTO yourls_url VALUES (_", b"a", b"!;", id="a character set of a row"),
        pytest.param(VALUES, b"-- \n", b"/*", id="comments"),
        pytest.param(ALIAS + b"https://a", b"/", b'\\nx"}]', id="slashes of an alias"),
        pytest.param(ALIAS, b"a.", b'\\nx"}]', id="dots of an alias"),
        pytest.param(ALIAS + b"a.bc", b"/", b'\\nx"}]', id="slashes behind a host"),
        pytest.param(HEADER, b'"', b"\nx", id="quotation marks of CSV"),
    ],
)
def test_hostile_repetitions_take_time_in_proportion(start: bytes, repeated: bytes, end: bytes) -> None:
    check_growth(lambda size: start + repeated * size + end, 3000)


def test_a_long_name_with_many_members_takes_time_in_proportion() -> None:
    def element(size: int) -> bytes:
        members = ",".join(f'"{number}":1' for number in range(size))
        return f'[{LINK}}},{LINK},"{"x" * 10 * size}":{{{members}}}}}]'.encode()

    check_growth(element, 500)
