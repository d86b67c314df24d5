"""Import files that are hostile, and properties of all files."""

import csv
import gzip
import io
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from time import thread_time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from linkmgr.features.imports import files
from linkmgr.features.imports.cells import value
from linkmgr.features.imports.files import text
from linkmgr.features.imports.rows import ReadError
from tests.support.reading import ELEMENT, HEADER, SHLINK, outcome, read, titles

# --- gzip


def test_several_files_of_gzip_are_one() -> None:
    lines = SHLINK.encode().splitlines(keepends=True)
    assert titles(b"".join(map(gzip.compress, lines)) + bytes(100)) == ["Café “Été”", None]


def test_a_gzip_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "RATIO_APPLIES", 1 << 17)
    content = gzip.compress(HEADER.encode() + b"https://example.com,a,b,\n" * 20_000)
    with pytest.raises(ReadError, match="unpacks to far more than links do"):
        for _ in files.read(io.BytesIO(content)):
            pass


# --- memory


class Endless(io.RawIOBase):
    """A file of 32 MiB that begins with these bytes and repeats others."""

    def __init__(self, start: bytes, repeated: bytes) -> None:
        super().__init__()
        self._start, self._block, self._at = start, repeated * ((1 << 16) // len(repeated)), 0

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        assert not whence
        self._at = offset
        return offset

    def read(self, size: int = -1) -> bytes:
        if self._at >= 1 << 25:
            return b""
        text = self._start[self._at : self._at + size] if self._at < len(self._start) else self._block[:size]
        self._at += len(text)
        return text


@pytest.mark.parametrize(
    ("start", "repeated"),
    [
        (HEADER.encode() + b'https://example.com,a,"', b"x"),
        (HEADER.encode(), b'"'),
        (b"[" + ELEMENT + b',{"longUrl": "', b"x"),
        (b"[" + ELEMENT + b",", b'{"a":['),
        (b"[" + ELEMENT, b" "),
        (b'{"data":', b"{"),
        (ELEMENT + b"\n", b'{"a":'),
        (b"INSERT INTO yourls_url VALUES ('", b"x"),
        (b"INSERT INTO yourls_url VALUES ", b"("),
        (b"/*", b"*"),
    ],
)
def test_a_row_that_never_ends_is_not_held_in_memory(
    monkeypatch: pytest.MonkeyPatch, start: bytes, repeated: bytes
) -> None:
    monkeypatch.setattr(text, "MAX_ENTRY", 1 << 17)
    tracemalloc.start()
    try:
        for _ in islice(files.read(Endless(start, repeated)), 5):  # type: ignore[arg-type]
            pass
    except ReadError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 16 << 20


# --- properties

CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff"), max_size=30)

WORD = CELL.map(lambda text: text.replace("\r", "").replace("\n", ""))


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(WORD, WORD, CELL), max_size=8),
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\r\n", "\n", "\r"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    packed=st.booleans(),
)
def test_any_csv_is_read_as_it_was_written(
    *, rows: list[tuple[str, str, str]], delimiter: str, end: str, quoting: Any, encoding: str, packed: bool
) -> None:
    if quoting == csv.QUOTE_MINIMAL:  # the module leaves other line ends without quotation marks
        rows = [(url, alias, note.replace("\r", "").replace("\n", "")) for url, alias, note in rows]
    written_text = io.StringIO(newline="")
    writer = csv.writer(written_text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([("Long URL", "Short code", "Note"), *rows])
    content = written_text.getvalue().encode(encoding)
    content = gzip.compress(content) if packed else content
    read_rows = read(content)
    written = [row for row in rows if any(map(str.strip, row))]
    assert [tuple(row.raw.values()) for row in read_rows] == written
    assert [row.problem is None for row in read_rows] == [bool(value(url)) for url, _, _ in written]


FRAGMENTS = st.sampled_from(
    [b"Long URL,Short code\n", b"keyword,url,clicks\r", b'"', b"\n", b"\r\n", b",", b";", b"\0", b"https://example.com",
     b"{", b"}", b"[", b"]", b'{"longUrl": "https://example.com", "shortCode": "a"}', b":", b"\\", b"\xef\xbb\xbf",
     b"\xff\xfe", b"\x1f\x8b", b"INSERT INTO yourls_url VALUES ", b"('a','https://b',NULL,'2026-01-01','',1)", b"(",
     b")", b"'", b"''", b"/*", b"*/", b"-- ", b"0x1", b"CREATE TABLE a (\n", b"INSERT INTO yourls_log VALUES ",
     b"(1,'2026-01-01','a','','','','DE')", b"`", b"#", b"sep=;\n", "é".encode(), b"\xe9"]
)  # fmt: skip


@settings(max_examples=200)
@given(parts=st.lists(st.one_of(FRAGMENTS, st.binary(max_size=8)), max_size=25), packed=st.booleans())
@example(parts=[b"Long URL,Short code\n", b'"', b"\n", b",", b'"'], packed=False)
@example(
    parts=[b"INSERT INTO yourls_url VALUES ", b"#\n", b"x\n", b"('a','https://b',NULL,'2026-01-01','',1)"], packed=False
)
def test_any_bytes_are_read_or_refused_wherever_the_pieces_end(parts: list[bytes], packed: bool) -> None:
    content = gzip.compress(b"".join(parts)) if packed else b"".join(parts)
    rows, message = outcome(content)
    if message:
        assert message[0].isupper()
        assert message.endswith((".", ","))
    for row in rows:
        assert (row.problem is None) == bool(row.members)
        assert row.problem is None or row.problem.startswith(f"Row {row.number} ")
    with pytest.MonkeyPatch.context() as patch:  # rows that end anywhere in the pieces that are read
        patch.setattr(text, "CHUNK", 7)
        assert outcome(content) == (rows, message)


# --- time

VALUES = b"INSERT INTO yourls_url VALUES ('a','https://b',NULL,'2026-01-01','',1);\n"
LINK = '{"longUrl":"https://example.com","shortCode":"a"'
ALIAS = b'[{"longUrl":"https://example.com","shortCode":"'
GROWTH = 8  # of the input; work that grows with its square grows 64 times
LIMIT = 28


def seconds(content: bytes) -> float:
    """Return the processor time of this thread, which other processes on the machine do not change."""
    start = thread_time()
    with suppress(ReadError):
        read(content)
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
        pytest.param(HEADER.encode(), b'"', b"\nx", id="quotation marks of CSV"),
    ],
)
def test_hostile_repetitions_take_time_in_proportion(start: bytes, repeated: bytes, end: bytes) -> None:
    check_growth(lambda size: start + repeated * size + end, 3000)


def test_a_long_name_with_many_members_takes_time_in_proportion() -> None:
    def element(size: int) -> bytes:
        members = ",".join(f'"{number}":1' for number in range(size))
        return f'[{LINK}}},{LINK},"{"x" * 10 * size}":{{{members}}}}}]'.encode()

    check_growth(element, 500)


def test_texts_of_visits_are_held_in_part() -> None:
    text = "x" * 100_000
    log = (
        f"INSERT INTO yourls_log VALUES (1,'2026-01-01 10:00:00','{text}','https://a.example/{text}','{text}','','DE');"
    )
    _, row = read(VALUES + log.encode())
    [visit] = row.visits
    assert visit.referrer.startswith("https://a.example/xxx")
    assert max(map(len, (visit.referrer, visit.agent, row.members["custom"]))) == 2048
