"""Import files in other encodings and dialects, and with damaged rows."""

import csv
import gzip
import io

import pytest

from linkmgr.imports import files
from tests.support.reading import CLOSE_QUOTE, HEADER, SHLINK, only, problem, read, titles

# --- encodings and dialects


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends_are_recognized(encoding: str, end: str) -> None:
    content = SHLINK.replace("\n", end).encode(encoding)
    recognized = files.recognize(content).source
    assert recognized
    assert recognized.name == "shlink"
    assert titles(content) == ["Café “Été”", None]
    first, _ = read(content)
    assert (first.tags, first.raw["Short code"]) == (["news", "mail"], "summer")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_recognized(delimiter: str) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows([["Long URL", "Short code", "Title"], ["https://example.com/?a=1,2;3|4", "summer", "a;b,c\td|e"]])
    assert only(text.getvalue().encode()).record["metatitle"] == "a;b,c\td|e"


def test_excel_may_name_the_delimiter_in_a_line_of_its_own() -> None:
    assert only(b"sep=;\r\nLong URL;Short code\r\nhttps://example.com;summer\r\n").record["custom"] == "summer"


def test_a_line_in_another_encoding_does_not_spoil_the_file() -> None:
    content = (HEADER + "https://example.com,a1,Été,\n").encode() + "https://example.com,a2,Été,\n".encode("cp1252")
    assert titles(content) == ["Été", "Été"]


def test_targets_with_international_names_are_kept() -> None:
    url = "https://пример.example/дорога?q=ü"
    assert only(f"Long URL,Short code\n{url},idn\n".encode()).record["url"] == url


def test_quoted_cells_may_have_lines_quotes_and_delimiters() -> None:
    content = HEADER.encode() + b'https://example.com,summer,"a\r\nb ""c"", d\n\n",\nhttps://example.com,jobs,e,\n'
    assert titles(content) == ['a\r\nb "c", d', "e"]


def test_a_quotation_mark_inside_a_cell_is_text() -> None:
    assert titles(HEADER.encode() + b'https://example.com,summer,19" screen,\n') == ['19" screen']


def test_empty_lines_are_no_rows() -> None:
    rows = read(b"\n\r\n" + HEADER.encode() + b"\n,,,\nhttps://example.com,summer\n\n , \n,jobs\n")
    problems = [(1, None), (2, "Row 2 has no target. Fill in 'Long URL', or leave the row out.")]
    assert [(row.number, row.problem) for row in rows] == problems


def test_missing_cells_are_empty_and_extra_cells_are_a_problem() -> None:
    short, long = read(HEADER.encode() + b"https://example.com\nhttps://example.com,a,b,c,d,e\n")
    assert short.record == {"url": "https://example.com"}
    assert long.problem == "Row 2 has 6 columns, but the first line has 4. Quote the cells."
    assert long.raw["column 5"] == "d"


def test_columns_may_repeat_or_lack_a_name() -> None:
    recognized = files.recognize(b"Long URL,Short code,,Note,Note\n")
    assert recognized.columns == ["Long URL", "Short code", "column 3", "Note", "Note (2)"]


def test_a_message_names_a_bounded_number_of_columns() -> None:
    message = problem(b",".join(b"%d%s" % (number, b"x" * 100) for number in range(500)) + b"\n")
    assert message.startswith(
        "In the mapping, set url to the name of the column that contains the target. The columns are: '0xxx"
    )
    assert len(message) < 3000


# --- damaged rows


@pytest.mark.parametrize("content", [b"", b"\n\r\n", b"\xef\xbb\xbf", b"  ", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_refused(content: bytes) -> None:
    assert problem(content) == "The file is empty."


def test_a_quotation_mark_that_is_never_closed_costs_one_row() -> None:
    content = HEADER.encode() + b'https://example.com,a1,"open,\nhttps://example.com,a2,b,\nhttps://example.com,a3,c,\n'
    rows = read(content)
    assert [row.problem for row in rows] == ["Row 1 has a quotation mark that is never closed.", None, None]
    assert rows[0].raw["Short code"] == "a1"


@pytest.mark.parametrize("size", [200_000, 3_000_000])
def test_a_cell_that_is_too_long_costs_one_row(size: int) -> None:
    content = HEADER.encode() + b"https://example.com,a1,%s,\nhttps://example.com,a2,b,\n" % (b"x" * size)
    rows = read(content)
    assert [row.problem for row in rows] == [f"Row 1 {CLOSE_QUOTE}", None]
    assert rows[1].record["custom"] == "a2"


def test_a_nul_character_is_a_problem() -> None:
    rows = read(HEADER.encode() + b"https://example.com,a\x00b,c,\nhttps://example.com,a2,b,\n")
    assert [row.problem for row in rows] == ["Row 1 contains a NUL character. Remove it.", None]
    assert rows[0].raw["Short code"] == "a\ufffdb"
    [row] = read(b'{"longUrl": "https://example.com", "shortCode": "a\\u0000b"}')
    assert row.problem == "Row 1 contains a NUL character. Remove it."


def test_a_binary_file_is_refused() -> None:
    assert problem(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    assert problem(b"a\x00b,cdefghijkl\n1,2\n") == "This is not a text file. Import a CSV, JSON or SQL file."
    assert problem(b"PK\x03\x04" + bytes(100)).startswith("This is a ZIP archive.")


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("createdAt", "31/01/2024", "Row 1 has a creation date in an unknown format: '31/01/2024'. "),
        ("createdAt", "2024-02-31", "Row 1 has a creation date in an unknown format: '2024-02-31'. "),
        ("createdAt", "9" * 12, "Row 1 has a creation date in an unknown format: "),
        ("validUntil", "tomorrow", "Row 1 has an expiry in an unknown format: 'tomorrow'. "),
        ("visits", "many", "Row 1 has clicks that are not a number: 'many'. "),
        ("visits", "-1", "Row 1 has clicks that are not a number: '-1'. "),
        ("visits", "9" * 19, "Row 1 has clicks that are not a number: "),
    ],
)
def test_a_value_of_another_form_is_a_problem(column: str, cell: str, message: str) -> None:
    row = only(f"longUrl,shortCode,{column}\nhttps://example.com,summer,{cell}\n".encode())
    assert (row.problem or "").startswith(message)
    assert row.record == {}


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-01-31T10:00:00Z", "2024-01-31 10:00:00"),
        ("2024-01-31T10:00:00.123456+02:00", "2024-01-31 08:00:00"),
        ("2024-01-31T10:00:00+0200", "2024-01-31 08:00:00"),
        ("2024-01-31 10:00:00", "2024-01-31 10:00:00"),
        ("2024-01-31 10:00:00 UTC", "2024-01-31 10:00:00"),
        ("Wed, 31 Jan 2024 10:00:00 GMT", "2024-01-31 10:00:00"),
        ("2024-01-31", "2024-01-31 00:00:00"),
        ("1706695200", "2024-01-31 10:00:00"),
        ("1706695200.0", "2024-01-31 10:00:00"),
        ("1706695200000", "2024-01-31 10:00:00"),
        ("1706695200000000", "2024-01-31 10:00:00"),
        ("0000-00-00 00:00:00", None),
        ("null", None),
        ("", None),
    ],
)
def test_times_become_utc(text: str, utc: str | None) -> None:
    row = only(f'longUrl,shortCode,createdAt,validUntil\nhttps://example.com,summer,"{text}","{text}"\n'.encode())
    assert row.created == utc
    end = "2024-01-31 23:59:59" if text == "2024-01-31" else utc
    assert row.record.get("expiry") == end


@pytest.mark.parametrize(
    ("text", "clicks"), [("1234", 1234), ("1,234", 1234), ("1 234 567", 1234567), ("12.0", 12), ("", None)]
)
def test_clicks_may_have_separators(text: str, clicks: int | None) -> None:
    assert only(f'longUrl,shortCode,visits\nhttps://example.com,summer,"{text}"\n'.encode()).clicks == clicks


@pytest.mark.parametrize("text", ["a|b", "a, b", "a;b", '["a", "b"]', "a,b,,a"])
def test_tags_may_have_several_separators(text: str) -> None:
    quoted = text.replace('"', '""')
    assert only(f'destination,slashtag,tags\nhttps://example.com,summer,"{quoted}"\n'.encode()).tags == ["a", "b"]
