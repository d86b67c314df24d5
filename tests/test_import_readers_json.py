"""JSON and SQL files: shapes, literals and damaged rows."""

import pytest

from tests.support.reading import ELEMENT, only, problem, read

# --- JSON


@pytest.mark.parametrize(
    "content",
    [
        b'[{"longUrl": "https://example.com/1", "shortCode": "a1"}, {"longUrl": "https://example.com/2"}]',
        b'\xef\xbb\xbf [\n{"longUrl": "https://example.com/1", "shortCode": "a1"}\n,\n{"longUrl":"https://example.com/2"}\n]\n',
        b'{"a": [], "b": {"c": [1, "[{"]}, "data": [{"longUrl": "https://example.com/1",'
        b' "shortCode": "a1", "tags": []}, {"longUrl": "https://example.com/2"}], "more": [{"x": 1}]}',
        b'{"longUrl": "https://example.com/1", "shortCode": "a1"}\r\n\r\n{"longUrl": "https://example.com/2"}',
    ],
)
def test_json_may_have_several_shapes(content: bytes) -> None:
    for text in (content, content.decode("utf-8-sig").encode("utf-16")):
        assert [row.record["url"] for row in read(text)] == ["https://example.com/1", "https://example.com/2"]


def test_malformed_elements_of_json_are_problems_and_reading_goes_on() -> None:
    good = b'{"longUrl": "https://example.com", "shortCode": "a"}'
    array = b"[" + good + b', {"longUrl": nothing}, 7, [1], ' + good + b', {"longUrl": "x'
    assert [row.problem for row in read(array)] == [
        None,
        "Row 2 is not valid JSON.",
        "Row 3 is not a JSON object with the members of a link.",
        "Row 4 is not a JSON object with the members of a link.",
        None,
        "Row 6 is incomplete, because the file ends inside it. Send the whole file.",
    ]
    lines = b'{"longUrl": nothing}\n' + good + b"\n[]\n" + b"x" * (1 << 21) + b"\n" + good
    assert [row.problem for row in read(lines)] == [
        "Row 1 is not valid JSON.",
        None,
        "Row 3 is not a JSON object with the members of a link.",
        "Row 4 is longer than 1 MiB. Shorten it.",
        None,
    ]


def test_deep_json_is_a_problem() -> None:
    deep = b'{"longUrl": "https://example.com", "shortCode": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    rows = read(b"[" + ELEMENT + b"," + deep + b"," + ELEMENT + b"]")
    assert [row.problem for row in rows] == [None, "Row 2 is not valid JSON.", None]


def test_an_empty_array_has_no_rows() -> None:
    assert read(b"[]") == read(b" [ ] \n") == []
    assert only(b"[7]").problem == "Row 1 is not a JSON object with the members of a link."
    assert problem(b'{"message":\n"hello"}').startswith("The file has no array of links.")


# --- SQL


def sql(rows: bytes, table: bytes = b"yourls_url") -> bytes:
    return b"INSERT INTO `" + table + b"` VALUES " + rows + b";\n"


def row(alias: bytes, title: bytes = b"NULL") -> bytes:
    return b"('" + alias + b"','https://example.com'," + title + b",'2026-02-04 12:04:57','127.0.0.1',7)"


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (rb"'It\'s'", "It's"),
        (b"'It''s'", "It's"),
        (b"''''", "'"),
        (rb"'a\\'", "a\\"),
        (rb"'a\nb\tc'", "a\nb\tc"),
        (rb"'100\%'", "100\\%"),
        (b"'),('", "),("),
        (b"'a;b -- c /* d'", "a;b -- c /* d"),
        ("'Été'".encode(), "Été"),
        ("'Été'".encode("cp1252"), "Été"),
        (b"0x4142", "AB"),
        (b"X'4142'", "AB"),
        (b"_utf8mb4'AB'", "AB"),
        (b"_binary 0x4142", "AB"),
        (b"12.5", "12.5"),
        (b"NULL", None),
        (b"''", None),
    ],
)
def test_literals_of_sql(literal: bytes, text: str | None) -> None:
    first, second = read(sql(row(b"a", literal) + b"," + row(b"b")))
    assert first.record.get("metatitle") == text
    assert second.record["custom"] == "b"


def test_tables_are_recognized_by_their_columns() -> None:
    columns = b"INSERT INTO db.links (url, keyword, clicks) VALUES ('https://example.com', 'a', 3);"
    create = b"CREATE TABLE t (\n keyword varchar(9),\n url text,\n KEY x (url)\n);\nINSERT INTO t VALUES ('b','https://example.com');"
    other = b"INSERT INTO other VALUES ('c','d');INSERT INTO `x_options` (`keyword`) VALUES ('e');"
    rows = read(b"SET NAMES utf8;" + other + columns + create + other)
    assert [(row.record["custom"], row.clicks) for row in rows] == [("a", 3), ("b", None)]


def test_rows_of_megabytes_are_read_one_by_one() -> None:
    content = sql(b",".join(row(b"a%d" % number, b"'x'") for number in range(6000)))
    rows = read(content)
    assert [rows[0].record["custom"], rows[-1].record["custom"], len(rows)] == ["a0", "a5999", 6000]


def test_malformed_rows_of_sql_are_problems_and_reading_goes_on() -> None:
    content = sql(row(b"a") + b", ('b', now(), 3), ('c')," + row(b"d")) + sql(row(b"e") + b",('f','unfinished")
    assert [row.problem or row.record["custom"] for row in read(content)] == [
        "a",
        "Row 2 is not a row of values.",
        "Row 3 has 1 values instead of 6.",
        "d",
        "e",
        "Row 6 is incomplete, because the file ends inside it.",
    ]


def test_a_dump_without_tables_of_yourls_is_refused() -> None:
    assert problem(b"-- MySQL dump\nINSERT INTO posts VALUES (1,'a');\n") == (
        "The SQL file has no rows of YOURLS. Export its tables yourls_url and yourls_log."
    )
