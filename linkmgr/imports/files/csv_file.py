"""Records of a CSV file."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from linkmgr.imports.files.text import MAX_COLUMNS, MAX_RECORD, Lines, Record, decode
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
    """The lines of one record, for a reader of the csv module."""

    def __init__(self, lines: Lines) -> None:
        self._lines, self._exhausted, self._size = lines, False, 0
        self.taken: list[bytes | None] = []

    def __iter__(self) -> Iterator[str]:
        while self._lines.ready:
            line = self._lines.ready.popleft()
            if line is None and self.taken:
                self._lines.ready.appendleft(line)
                raise csv.Error
            self.taken.append(line)
            self._size += len(line or b"")
            if line is None or self._size > MAX_RECORD or len(self.taken) > _MAX_LINES:
                raise csv.Error
            yield decode(line)
        self._exhausted = True

    def is_exhausted(self) -> bool:
        return self._exhausted

    def begin(self) -> None:
        self.taken, self._size = [], 0

    def give_up(self, delimiter: str, problem: str) -> Cells:
        """Continue after the first line of the record. Return its cells."""
        first, *others = self.taken
        self._lines.ready.extendleft(reversed(others))
        text = decode((first or b"")[:MAX_RECORD]).strip()
        return [cell[:_MAX_SHOWN] for cell in text.split(delimiter, MAX_COLUMNS)], problem


def _records(lines: Lines, delimiter: str) -> Iterator[Cells | None]:
    """Yield the cells of each record, and None after each piece of the file."""
    while True:
        feed = _Feed(lines)
        reader = csv.reader(iter(feed), delimiter=delimiter)
        while not feed.is_exhausted():
            feed.begin()
            try:
                cells = next(reader)
            except StopIteration:
                continue
            except csv.Error:
                yield feed.give_up(delimiter, _TOO_LONG)
                break
            if not feed.is_exhausted():
                yield cells, None
            elif lines.ended:
                yield feed.give_up(delimiter, _NOT_CLOSED)
                break
            else:  # the record continues in the next piece
                lines.ready.extendleft(reversed(feed.taken))
        if feed.is_exhausted() and not (lines.ready and lines.ended):
            if lines.ended:
                return
            lines.fill()
            yield None


def header(lines: Lines) -> tuple[list[str], str]:
    """Return the columns in the first line that is not empty, and the delimiter."""
    delimiter = ""
    while True:
        if not lines.ready:
            if lines.ended:
                raise ReadError("The file is empty.")
            lines.fill()
            continue
        text = decode(lines.ready[0] or b"x").removeprefix("\ufeff")
        if separator := _SEPARATOR.fullmatch(text):
            delimiter = separator[1]
        elif text.strip():
            break
        lines.ready.popleft()
    delimiter = delimiter or _delimiter_of(text)
    cells, problem = next(cells for cells in _records(lines, delimiter) if cells)
    if problem:
        raise ReadError("The first line is too long, or has a quotation mark that is never closed.")
    if any("\0" in cell for cell in cells):
        raise ReadError("This is not a text file. Import a CSV, JSON or SQL file.")
    if len(cells) > MAX_COLUMNS:
        raise ReadError(f"The first line has more than {MAX_COLUMNS} columns. Leave out those that links do not need.")
    return _distinct([cells[0].removeprefix("\ufeff"), *cells[1:]]), delimiter


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


def csv_records(lines: Lines) -> Iterator[Record | None]:
    """Yield the records behind the header, without empty lines, and None after each piece of the file."""
    columns, delimiter = header(lines)
    for record in _records(lines, delimiter):
        if record is None:
            yield None
            continue
        cells, problem = record
        if any(map(str.strip, cells[len(columns) :])):
            problem = problem or f"has {len(cells)} columns, but the first line has {len(columns)}. Quote the cells."
        if problem or any(map(str.strip, cells)):
            names = chain(columns, (f"column {len(columns) + number}" for number in range(1, _MAX_EXTRA + 1)))
            yield Record(dict(zip(names, cells, strict=False)), problem)
