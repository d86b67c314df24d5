"""Records of a CSV file."""

import csv
import re
from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain
from typing import Self, TextIO

from linkmgr.imports.files import text
from linkmgr.imports.files.text import MAX_COLUMNS, Record
from linkmgr.imports.rows import ReadError

DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # a first line that Excel writes
_NOT_CLOSED = "has a quotation mark that is never closed."
_TOO_LONG = "is too long, or has a quotation mark that is never closed."
_MAX_SHOWN = 500  # characters of a malformed cell
_MAX_EXTRA = 2  # cells behind the last column, which are shown with the problem
_MAX_LINES = 1000  # of a record; its lines are read again if it is given up

Cells = tuple[list[str], str | None]  # of a record, and its problem or None


class _Feed:
    """The lines of the next record, for a reader of the csv module."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self._again = lines, deque[str]()

    def begin(self) -> None:
        self._taken, self._size, self.is_exhausted = list[str](), 0, False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines, None)
        if line is None:
            self.is_exhausted = True
            raise StopIteration
        self._taken.append(line)
        self._size += len(line)
        if self._size > text.MAX_RECORD or len(self._taken) > _MAX_LINES:
            raise csv.Error
        return line

    def give_up(self, delimiter: str) -> list[str]:
        """Continue after the first line of the record. Return its cells."""
        first, *others = self._taken
        self._again.extendleft(reversed(others))
        return [cell[:_MAX_SHOWN] for cell in first.strip().split(delimiter, MAX_COLUMNS)]


def _records(lines: Iterator[str], delimiter: str) -> Iterator[Cells]:
    """Yield the cells of each record. An empty line has none."""
    feed = _Feed(lines)
    reader = csv.reader(feed, delimiter=delimiter)
    while True:
        feed.begin()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield feed.give_up(delimiter), _TOO_LONG
        else:
            yield (feed.give_up(delimiter), _NOT_CLOSED) if feed.is_exhausted else (cells, None)


def read_header(lines: Iterator[str]) -> tuple[list[str], Iterator[Cells]]:
    """Return the columns in the first line that is not empty, and the records behind it."""
    delimiter = ""
    for line in lines:
        if separator := _SEPARATOR.fullmatch(line):
            delimiter = separator[1]
        elif line.strip():
            break
    else:
        raise ReadError("The file is empty.")
    records = _records(chain([line], lines), delimiter or _delimiter_of(line))
    cells, problem = next(records)
    if problem:
        raise ReadError("The first line is too long, or has a quotation mark that is never closed.")
    if any("\0" in cell for cell in cells):
        raise ReadError("This is not a text file. Import a CSV, JSON or SQL file.")
    if len(cells) > MAX_COLUMNS:
        raise ReadError(f"The first line has more than {MAX_COLUMNS} columns. Leave out those that links do not need.")
    return _distinct(cells), records


def _delimiter_of(line: str) -> str:
    """Return the most frequent delimiter of a header line."""
    return max(DELIMITERS, key=re.sub(r'"[^"]*"', "", line).count)


def _distinct(cells: list[str]) -> list[str]:
    """Return a name for each column, because headers repeat names and leave them out."""
    names: dict[str, None] = {}
    numbers: Counter[str] = Counter()
    for index, cell in enumerate(cells, start=1):
        name = base = cell.strip() or f"column {index}"
        while name in names:
            numbers[base] += 1
            name = f"{base} ({numbers[base] + 1})"
        names[name] = None
    return [*names]


def csv_records(file: TextIO) -> Iterator[Record | None]:
    """Yield the records behind the header, and None for each line that is empty."""
    columns, records = read_header(text.lines(file))
    for cells, reason in records:
        problem = reason
        if not reason and any(map(str.strip, cells[len(columns) :])):
            problem = f"has {len(cells)} columns, but the first line has {len(columns)}. Quote the cells."
        if problem or any(map(str.strip, cells)):
            names = chain(columns, (f"column {len(columns) + number}" for number in range(1, _MAX_EXTRA + 1)))
            yield Record(dict(zip(names, cells, strict=False)), problem)
        else:
            yield None
