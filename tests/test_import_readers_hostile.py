"""Import files that are made to cost more time or memory than their size explains."""

from collections.abc import Callable
from contextlib import suppress
from time import thread_time

import pytest

from linkmgr.imports import files
from linkmgr.imports.rows import ReadError
from tests.support.reading import CLOSE_QUOTE, only, problem, read

HEADER = b"Long URL,Short code,Title,Tags\n"
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


def test_a_header_of_more_than_500_columns_is_refused() -> None:
    columns = [b"Long URL", b"Short code", *[b"a"] * 498]
    row = b"https://example.com,summer" + b"," * 498 + b"\n"
    names = files.recognize(b",".join(columns) + b"\n").columns
    assert (names[2], names[3], names[-1]) == ("a", "a (2)", "a (498)")
    assert only(b",".join(columns) + b"\n" + row).record["custom"] == "summer"
    assert problem(b",".join([*columns, b""]) + b"\n" + row) == (
        "The first line has more than 500 columns. Leave out those that links do not need."
    )


def test_repeated_names_of_columns_stay_apart() -> None:
    names = files.recognize(b"Long URL,Short code,a (2),a,a,,a,column 6,a (2)\n").columns
    assert names[2:] == ["a (2)", "a", "a (3)", "column 6", "a (4)", "column 6 (2)", "a (2) (2)"]


def test_a_table_of_more_than_500_columns_has_no_links() -> None:
    columns = ",".join(["keyword", "url", *(f"c{number}" for number in range(499))])
    content = f"INSERT INTO a ({columns}) VALUES ({'1,' * 500}1);".encode()
    assert problem(content).startswith("The SQL file has no rows of YOURLS.")


def test_a_record_of_more_than_1000_lines_costs_one_row() -> None:
    quoted = b'https://example.com,a1,"b%s",\n' % (b"\n" * 999)
    rows = read(HEADER + quoted + b'https://example.com,a2,"open,\n' + b"https://example.com,a3,c,\n" * 1500)
    assert [row.problem for row in rows[:2]] == [None, f"Row 2 {CLOSE_QUOTE}"]
    assert [row.record.get("custom") for row in rows[2:]] == ["a3"] * 1500


def test_the_columns_behind_the_last_one_are_cut() -> None:
    [row] = read(HEADER + b"https://example.com,a,b,c,d,e,f" + b"," * 100_000 + b"g\n")
    assert row.problem == "Row 1 has 100007 columns, but the first line has 4. Quote the cells."
    assert [*row.raw] == ["Long URL", "Short code", "Title", "Tags", "column 5", "column 6"]
    assert [*row.raw.values()] == ["https://example.com", *"abcde"]


def test_texts_of_visits_are_held_in_part() -> None:
    text = "x" * 100_000
    log = (
        f"INSERT INTO yourls_log VALUES (1,'2026-01-01 10:00:00','{text}','https://a.example/{text}','{text}','','DE');"
    )
    _, row = read(VALUES + log.encode())
    [visit] = row.visits
    assert visit.referrer.startswith("https://a.example/xxx")
    assert max(map(len, (visit.referrer, visit.agent, row.record["custom"]))) == 2048


def test_a_link_with_too_many_tags_is_a_problem() -> None:
    tags = ",".join(f'"{number:05}"' for number in range(14_000))
    _, row = read(f'[{LINK}}},{LINK},"tags":[{tags}]}}]'.encode())
    assert row.problem == "Row 2 has more than 65536 characters for a link. Shorten them."
