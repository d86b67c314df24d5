"""Import files in all formats, encodings and dialects, and with damaged rows: each file with what its rows become."""

import gzip
import io
from collections.abc import Callable
from hashlib import shake_256
from pathlib import Path

import orjson
import pytest

from linkmgr.features.imports import files
from tests.support.reading import CLOSE_QUOTE, HEADER, SHLINK, only, outcome, problem, read, titles

FILES = Path(__file__).parent / "import_files"
LINK = b"https://example.com,summer"
NO_JSON = "is not valid JSON, is incomplete, or is longer than 2 MiB. Correct the file."
NO_VALUES = "is no row of values, is incomplete, or is longer than 2 MiB. Correct the file."
NO_OBJECT = "is not a JSON object with the members of a link."
DEEP = b'{"longUrl": "https://example.com", "shortCode": ' + b"[" * 5000 + b"]" * 5000 + b"}"


def sql(rows: bytes) -> bytes:
    return b"INSERT INTO `yourls_url` VALUES " + rows + b";\n"


def row(title: bytes) -> bytes:
    return b"('a','https://example.com'," + title + b",'2026-02-04 12:04:57','127.0.0.1',7)"


def link(title: str) -> bytes:
    return orjson.dumps({"longUrl": "https://example.com", "shortCode": "a", "title": title})


def lines(*rows: bytes) -> bytes:
    return b"\n".join([HEADER.strip().encode(), *rows, b""])


# The title of each row, or the end of its problem.
ROWS: dict[str, tuple[bytes, list[str]]] = {
    "Excel names the delimiter": (b"sep=;\r\nLong URL;Short code;Title\r\nhttps://example.com;summer;a,b\r\n", ["a,b"]),
    "a line in another encoding": (lines(LINK + b",\xc9t\xe9,", LINK + ",Été,".encode()), ["Été", "Été"]),
    "quoted lines, quotes and delimiters": (lines(LINK + b',"a\r\nb ""c"", d\n\n",', LINK + b",e,"),
                                            ['a\r\nb "c", d', "e"]),
    "a quotation mark in a cell": (lines(LINK + b',19" screen,'), ['19" screen']),
    "empty lines": (b"\n\r\n" + lines(b"", b",,,", LINK + b",a", b"", b" , ", b",jobs"),
                    ["a", "has no target. Fill in 'Long URL', or leave the row out."]),
    "too many cells": (lines(LINK + b",a,c,d,e,f" + b"," * 100_000 + b"g"),
                       ["has 100007 columns, but the first line has 4. Quote the cells."]),
    "a long cell": (lines(LINK + b",%s," % (b"x" * 200_000), LINK + b",b,"),
                    ["has more than 65536 characters for a link. Shorten them.", "b"]),
    "many lines in a cell": (lines(LINK + b',"%s",' % (b"b" + b"\n" * 9999), LINK + b",c,"), ["b", "c"]),
    "a NUL character": (lines(LINK + b",a\0b,", LINK + b",c,"), ["contains a NUL character. Remove it.", "c"]),
    "a NUL character in JSON": (link("a\0b"), ["contains a NUL character. Remove it."]),
    "malformed elements": (b"[" + link("a") + b', 7, [1, {}], "x", ' + link("b") + b"]",
                           ["a", NO_OBJECT, NO_OBJECT, NO_OBJECT, "b"]),
    "malformed lines": (b'{"longUrl": nothing}\n' + link("a") + b"\n[]\n" + DEEP + b"\n" + link("b"),
                        ["is not valid JSON.", "a", NO_OBJECT, "is not valid JSON.", "b"]),
    "a value in many others": (b'{"longUrl": "https://a.example", "x": ' + b"[" * 300 + b"]" * 300 + b"}\n" + link("b"),
                               ["has a value that is nested in too many others. Leave it out.", "b"]),
    "an empty array": (b"[]", []),
    "an empty array with spaces": (b" [ ] \n", []),
    "an array without objects": (b"[7]", [NO_OBJECT]),
    "brackets in a text before the array": (rb'{"query": "\"[{a}]", "links": [' + link("a") + b"]}", ["a"]),
    "rows of SQL with too few values": (sql(row(b"'a'") + b", ('c')," + row(b"'d'")) + sql(row(b"'e'")),
                                        ["a", "has 1 values instead of 6.", "d", "e"]),
    "rows of megabytes": (sql(b",".join([row(b"'x'")] * 6000)), ["x"] * 6000),
}  # fmt: skip
# The number of rows before the one that ends the file, and the sentence.
ENDED: dict[str, tuple[bytes, int, str]] = {
    "an open quotation mark": (lines(LINK + b",a,", LINK + b',"open,', LINK + b",c,"), 1, f"Row 2 {CLOSE_QUOTE}"),
    "a long record": (lines(LINK + b",a,", LINK + b',"' + b"x,\ny\n" * 600_000 + b'",'), 1, f"Row 2 {CLOSE_QUOTE}"),
    "a long line": (lines(LINK + b",a,", LINK + b",%s," % (b"x" * 3_000_000)), 1,
                    "Line 3 is longer than 2 MiB. Correct the file."),
    "a long line of JSON": (link("a") + b"\n" + b"x" * (1 << 22), 1, "Line 2 is longer than 2 MiB. Correct the file."),
    "a malformed element": (b"[" + link("a") + b', {"longUrl": nothing}, ' + link("b") + b"]", 1, f"Row 2 {NO_JSON}"),
    "an incomplete element": (b"[" + link("a") + b', {"longUrl": "x', 1, f"Row 2 {NO_JSON}"),
    "a deep element": (b"[" + link("a") + b"," + DEEP + b"]", 1, f"Row 2 {NO_JSON}"),
    "an incomplete row of SQL": (sql(row(b"'e'") + b",('f','unfinished"), 1, f"Row 2 {NO_VALUES}"),
    "a malformed row of SQL": (sql(row(b"'e'") + b", ('b', now(), 3)," + row(b"'d'")), 1, f"Row 2 {NO_VALUES}"),
    "a long text of SQL": (sql(row(b"'e'")) + b"INSERT INTO other VALUES ('%s');" % (b"x" * (1 << 22)), 1,
                           "The SQL file has a text of more than 2 MiB. Export only yourls_url and yourls_log."),
}  # fmt: skip
REFUSED = {
    b"": "The file is empty.",
    b"\n\r\n": "The file is empty.",
    b"\xef\xbb\xbf": "The file is empty.",
    b"  ": "The file is empty.",
    gzip.compress(b"", mtime=0): "The file is empty.",
    b"a\x00b,cdefghijkl\n1,2\n": "This is not a text file. Import a CSV, JSON or SQL file.",
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR": "",
    b"PK\x03\x04" + bytes(100): "This is a ZIP archive. Unpack it, and import the files in it one by one.",
    b'{"message":\n"hello"}': "The file has no array of links.",
    b"-- MySQL dump\nINSERT INTO posts VALUES (1,'a');\n":
        "The SQL file has no rows of YOURLS. Export its tables yourls_url and yourls_log.",
    f"INSERT INTO a (keyword,url,{','.join(f'c{n}' for n in range(499))}) VALUES ({'1,' * 500}1);".encode():
        "The SQL file has no rows of YOURLS.",
    b"Long URL,Short code" + b",a" * 499 + b"\n":
        "The first line has more than 500 columns. Leave out those that links do not need.",
    b"\x1f\x8bgarbage": "The gzip file is damaged.",
    gzip.compress(SHLINK.encode(), mtime=0)[:5]: "The gzip file is incomplete.",
    gzip.compress(SHLINK.encode(), mtime=0)[:-1]: "The gzip file is incomplete.",
    gzip.compress(SHLINK.encode(), mtime=0)[:-9]: "The gzip file is incomplete.",
    gzip.compress(SHLINK.encode(), mtime=0)[:-6] + bytes(6): "The gzip file is damaged.",
}  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), ROWS.values(), ids=ROWS)
def test_each_row_becomes_a_link_or_a_problem(content: bytes, expected: list[str]) -> None:
    rows = read(content)
    prefixes = [f"Row {number} " for number in range(1, len(rows) + 1)]
    assert [row.number for row in rows] == [*range(1, len(rows) + 1)]
    told = [
        (row.problem or row.members["title"]).removeprefix(start) for row, start in zip(rows, prefixes, strict=True)
    ]
    assert told == expected


@pytest.mark.parametrize(("content", "number", "message"), ENDED.values(), ids=ENDED)
def test_a_row_that_never_ends_or_is_malformed_ends_the_file(content: bytes, number: int, message: str) -> None:
    rows, ended = outcome(content)
    assert ([row.number for row in rows if not row.problem], ended) == ([*range(1, number + 1)], message)


@pytest.mark.parametrize(("content", "message"), REFUSED.items())
def test_a_file_that_cannot_be_read_is_refused(content: bytes, message: str) -> None:
    assert problem(content).startswith(message)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_preview_has_only_rows_that_the_first_bytes_have_as_a_whole(pack: Callable[[bytes], bytes]) -> None:
    cells = [shake_256(b"%d" % start).hexdigest(5000).encode() for start in range(20)]
    content = pack(lines(*(LINK + b"," + cell + b"," for cell in cells)))
    rows = files.first_rows(io.BytesIO(content), "", {}, 10)
    assert len(rows) in range(2, 8)
    assert [row.members["title"].encode() for row in rows] == cells[: len(rows)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends_are_recognized(encoding: str, end: str) -> None:
    content = SHLINK.replace("\n", end).encode(encoding)
    recognized = files.recognize(content).source
    assert recognized
    assert recognized.name == "shlink"
    assert titles(content) == ["Café “Été”", None]
    assert read(content)[0].tags == ["news", "mail"]


@pytest.mark.parametrize(
    "content",
    [
        b'[{"longUrl": "https://example.com/1", "shortCode": "a1"}, {"longUrl": "https://example.com/2"}]',
        b'\xef\xbb\xbf [\n{"longUrl": "https://example.com/1", "shortCode": "a1"}\n,\n{"longUrl":"https://example.com/2"}\n]\n',
        b'{"a": [], "b": {"c": [1, "["]}, "data": [{"longUrl": "https://example.com/1",'
        b' "shortCode": "a1", "tags": []}, {"longUrl": "https://example.com/2"}], "more": [{"x": 1}]}',
        b'{"longUrl": "https://example.com/1", "shortCode": "a1"}\r\n\r\n{"longUrl": "https://example.com/2"}',
    ],
)
def test_json_may_have_several_shapes(content: bytes) -> None:
    for text in (content, content.decode("utf-8-sig").encode("utf-16")):
        assert [row.members["url"] for row in read(text)] == ["https://example.com/1", "https://example.com/2"]


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (rb"'It\'s'", "It's"),
        (b"'It''s'", "It's"),
        (b"''''", "'"),
        (rb"'a\\'", "a\\"),
        (rb"'a\nb\tc'", "a\nb\tc"),
        (rb"'100\%'", "100\\%"),
        (b"'a;b -- c /* d'", "a;b -- c /* d"),
        ("'Été'".encode(), "Été"),
        ("'Été'".encode("cp1252"), "Été"),
        (b"0x4142", "AB"),
        (b"X'4142'", "AB"),
        (b"_utf8mb4'AB'", "AB"),
        (b"_binary 0x4142", "AB"),
        (b"NULL", None),
        (b"''", None),
    ],
)
def test_literals_of_sql(literal: bytes, text: str | None) -> None:
    assert titles(sql(row(literal) + b"," + row(b"'b'"))) == [text, "b"]


def test_tables_are_recognized_by_their_columns() -> None:
    columns = b"INSERT INTO db.links (url, keyword, clicks) VALUES ('https://example.com', 'a', 3);"
    create = b"CREATE TABLE t (\n keyword varchar(9),\n url text,\n KEY x (url)\n);\nINSERT INTO t VALUES ('b','https://example.com');"
    other = b"INSERT INTO other VALUES ('c','d');INSERT INTO `x_options` (`keyword`) VALUES ('e');"
    rows = read(b"SET NAMES utf8;" + other + columns + create + other)
    assert [(row.members["custom"], row.clicks) for row in rows] == [("a", 3), ("b", None)]


def test_columns_may_repeat_or_lack_a_name() -> None:
    names = files.recognize(b"Long URL,Short code,,a (2),a,a,,a,column 6,a (2)\n").columns
    assert names[2:] == ["column 3", "a (2)", "a", "a (6)", "column 7", "a (8)", "column 6", "a (2) (10)"]
    assert files.recognize(b"Long URL,Short code" + b",a" * 498 + b"\n").columns[-1] == "a (500)"


def test_the_report_has_the_first_cells_of_a_row_that_cannot_be_read() -> None:
    [row] = read(lines(b"https://example.com,a,b,c,d,e,f,g"))
    assert row.raw == {"Long URL": "https://example.com", "Short code": "a", "Title": "b", "Tags": "c",
                       "column 5": "d", "column 6": "e"}  # fmt: skip
    assert read(lines(b"https://example.com,a\0b"))[0].raw["Short code"] == "a\ufffdb"


def test_a_message_names_a_bounded_number_of_columns() -> None:
    message = problem(b",".join(b"%d%s" % (number, b"x" * 100) for number in range(500)) + b"\n")
    assert message.startswith("This is not an export of links. Its columns are: '0xxx")
    assert len(message) < 3000


# --- values


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("createdAt", "31/01/2024", "Row 1 has a creation date in an unknown format: '31/01/2024'. "),
        ("createdAt", "2024-02-31", "Row 1 has a creation date in an unknown format: '2024-02-31'. "),
        ("createdAt", "9" * 12, "Row 1 has a creation date in an unknown format: "),
        ("validUntil", "tomorrow", "Row 1 has an expiry in an unknown format: 'tomorrow'. "),
        ("visits", "many", "Row 1 has clicks that are not a number: 'many'. "),
        ("visits", "-1", "Row 1 has clicks that are not a number: '-1'. "),
        ("visits", "1.5", "Row 1 has clicks that are not a number: '1.5'. "),
        ("visits", "1.23.456", "Row 1 has clicks that are not a number: '1.23.456'. "),
        ("validUntil", "1.13.2030", "Row 1 has an expiry in an unknown format: '1.13.2030'. "),
        ("visits", "9" * 19, "Row 1 has clicks that are not a number: "),
    ],
)
def test_a_value_of_another_form_is_a_problem(column: str, cell: str, message: str) -> None:
    row = only(f"longUrl,shortCode,{column}\nhttps://example.com,summer,{cell}\n".encode())
    assert (row.problem or "").startswith(message)
    assert row.members == {}


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-01-31T10:00:00.123456+02:00", "2024-01-31 08:00:00"),
        ("2024-01-31", "2024-01-31 00:00:00"),
        ("1706695200", "2024-01-31 10:00:00"),
        ("1706695200000.0", "2024-01-31 10:00:00"),
        ("1706695200000000", "2024-01-31 10:00:00"),
        ("31.01.2024 10:00:00", "2024-01-31 10:00:00"),
        ("31.1.2024, 10:00", "2024-01-31 10:00:00"),
        ("0000-00-00 00:00:00", None),
        ("0", None),
        ("null", None),
        ("", None),
    ],
)
def test_times_become_utc(text: str, utc: str | None) -> None:
    row = only(f'longUrl,shortCode,createdAt,validUntil\nhttps://example.com,summer,"{text}","{text}"\n'.encode())
    assert row.created == utc
    end = "2024-01-31 23:59:59" if text == "2024-01-31" else utc
    assert row.members.get("expiry") == end


@pytest.mark.parametrize(
    ("text", "clicks"), [
        ("1234", 1234), ("1,234", 1234), ("1 234 567", 1234567), ("12.0", 12), ("", None), ("0", 0),
        ("1.000", 1000), ("12.000", 12000), ("1.234.567", 1234567), ("1'234", 1234), ("1\u202f234", 1234),
        ("1,234.00", 1234), ("1234,0", 1234),
    ],
)  # fmt: skip
def test_clicks_may_have_separators(text: str, clicks: int | None) -> None:
    assert only(f'longUrl,shortCode,visits\nhttps://example.com,summer,"{text}"\n'.encode()).clicks == clicks


@pytest.mark.parametrize("text", ["a|b", "a, b", "a;b", '["a", "b"]', "a,b,,a"])
def test_tags_may_have_several_separators(text: str) -> None:
    quoted = text.replace('"', '""')
    assert only(f'destination,slashtag,tags\nhttps://example.com,summer,"{quoted}"\n'.encode()).tags == ["a", "b"]


# --- quotation marks


def test_a_quotation_mark_that_takes_in_rows_is_a_problem() -> None:
    swallowed = lines(LINK + b',"open,', b'https://example.com,b,ends with ",', LINK + b",c,")
    first, last = read(swallowed)
    assert first.problem == "Row 1 has a quotation mark that takes in the rows behind it. Double it, or remove it."
    assert last.members["title"] == "c"
    assert titles(lines(LINK + b',"see, for more,\nhttps://example.com/a",', LINK + b",c,"))[1:] == ["c"]
