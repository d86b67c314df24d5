import csv
import re
from collections.abc import Iterator
from itertools import chain
from typing import TextIO

from linkmgr.features.imports.files import text
from linkmgr.features.imports.files.text import MAX_COLUMNS, Entry
from linkmgr.features.imports.rows import ReadError, Unreadable

DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # a first line that Excel writes
_TOO_LONG = "is too long, or has a quotation mark that is never closed. Correct the file."
_TAKES_IN = "has a quotation mark that takes in the rows behind it. Double it, or remove it."
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_ESCAPED, _ESCAPES = re.compile(r"\\([tn\\])"), {"t": "\t", "n": "\n", "\\": "\\"}  # of mysql --batch
_SPECIAL = re.compile(r'["\t\n]')
_URL = re.compile(r"\w+://\S+")
_FEW = 2  # delimiters; with fewer, a line of a text may look like a row
_MAX_EXTRA = 2  # cells behind the last column, which are shown with the problem

csv.field_size_limit(text.MAX_ENTRY)


def _rows(lines: Iterator[str], delimiter: str) -> Iterator[list[str]]:
    size = 0

    def measured(line: str) -> str:
        nonlocal size
        size += len(line)
        if size > text.MAX_ENTRY:
            raise Unreadable(_TOO_LONG)
        return line

    def bounded() -> Iterator[str]:
        yield from map(measured, lines)
        if size:
            raise Unreadable(_TOO_LONG)

    def ended(cells: list[str]) -> list[str]:
        nonlocal size
        size = 0
        return cells

    return map(ended, csv.reader(bounded(), delimiter=delimiter))


def _literal(lines: Iterator[str]) -> Iterator[str]:
    """Quote the cells of each line of a tab-separated file that is a row: mysql --batch writes
    quotation marks as they are, and line breaks, tabs and backslashes with a backslash. A quotation
    mark may remain open in a line if the next one is no row."""
    number, is_open, following = 0, False, ""
    for line in chain(lines, ("",)):
        previous, following = following, line
        number = number or line.count("\t")
        ends = previous.count('"') % 2 == 0 or not line or (line.count("\t") == number and "://" in line)
        if previous and not is_open and previous.count("\t") == number and ends:
            cells = previous.rstrip("\r\n").split("\t")
            yield "\t".join(map(_quoted, cells)) + "\n"
        elif previous:
            is_open ^= previous.count('"') % 2 == 1
            yield previous


def _quoted(cell: str) -> str:
    if _QUOTED.fullmatch(cell):
        return cell
    cell = _ESCAPED.sub(lambda escape: _ESCAPES[escape[1]], cell)
    if not _SPECIAL.search(cell):
        return cell
    return '"' + cell.replace('"', '""') + '"'


def _takes_in_rows(cells: list[str]) -> bool:
    """Return True if a quotation mark has made the rows behind it a part of a cell. The last one
    ends at its mark."""
    for index, cell in enumerate(cells):
        lines = cell.splitlines()[1:]
        numbers = [len(cells) - 1] * (len(lines) - 1) + [index]
        if any(
            number >= _FEW and _is_row(line, number) for line, number in zip(lines, numbers, strict=False)
        ):
            return True
    return False


def _is_row(line: str, number: int) -> bool:
    return "://" in line and any(
        line.count(mark) == number and any(map(_URL.fullmatch, map(str.strip, line.split(mark))))
        for mark in DELIMITERS
    )


def read_header(lines: Iterator[str]) -> tuple[list[str], Iterator[list[str]]]:
    delimiter = ""
    for line in lines:
        if separator := _SEPARATOR.fullmatch(line):
            delimiter = separator[1]
        elif line.strip():
            break
    else:
        raise ReadError("The file is empty.")
    delimiter = delimiter or max(DELIMITERS, key=re.sub(r'"[^"]*"', "", line).count)
    lines = chain([line], lines)
    rows = _rows(_literal(lines) if delimiter == "\t" else lines, delimiter)
    try:
        cells = next(rows)
    except Unreadable as problem:
        raise ReadError(f"The first line {problem}") from None
    if any("\0" in cell for cell in cells):
        raise ReadError("This is not a text file. Import a CSV, JSON or SQL file.")
    if len(cells) > MAX_COLUMNS:
        raise ReadError(
            f"The first line has more than {MAX_COLUMNS} columns. Leave out those that links do not need."
        )
    return _distinct(cells), rows


def _distinct(cells: list[str]) -> list[str]:
    """Return a name for each column, because headers repeat names and leave them out."""
    names: list[str] = []
    for index, cell in enumerate(cells, start=1):
        name = cell.strip() or f"column {index}"
        while name in names:
            name = f"{name} ({index})"
        names.append(name)
    return names


def csv_entries(file: TextIO) -> Iterator[Entry | None]:
    """Yield the entries behind the header, and None for each line that is empty."""
    columns, rows = read_header(text.lines(file))
    names = [*columns, *(f"column {len(columns) + number}" for number in range(1, _MAX_EXTRA + 1))]

    def entry(cells: list[str]) -> Entry | None:
        if any(map(str.strip, cells[len(columns) :])):
            problem = f"has {len(cells)} columns, but the first line has {len(columns)}. Quote the cells."
            return Entry(dict(zip(names, cells, strict=False)), problem)
        if _takes_in_rows(cells):
            return Entry(dict(zip(names, cells, strict=False)), _TAKES_IN)
        is_empty = not any(map(str.strip, cells))
        return None if is_empty else Entry(dict(zip(columns, cells, strict=False)))

    return map(entry, rows)
