"""Records of a CSV file."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from linkmgr.imports.rows import ReadError
from linkmgr.imports.streams import HEAD, MAX_COLUMNS, MAX_RECORD, Line, Lines, Record, decode

DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # a first line that Excel writes
_NOT_CLOSED = "has a quotation mark that is never closed."
_TOO_LONG = "is too long, or has a quotation mark that is never closed."
_MAX_SHOWN = 500  # characters of a malformed cell
_MAX_EXTRA = 2  # cells behind the last column, which are shown with the problem
_MAX_LINES = 1000  # of a record; its lines are read again if it is given up


class _Reader:
    """A reader of the csv module that continues on the next line after a record that it cannot read."""

    def __init__(self, lines: Lines, delimiter: str) -> None:
        self._lines, self._delimiter = lines, delimiter
        self._taken: list[Line] = []
        self._restart()

    def _restart(self) -> None:
        self._exhausted = False
        self._reader = csv.reader(self._feed(), delimiter=self._delimiter)

    def _feed(self) -> Iterator[str]:
        for line in self._lines:
            if line.text is None and self._taken:
                self._lines.push_back([line])
                raise csv.Error
            self._taken.append(line)
            is_long = line.end - self._taken[0].start > MAX_RECORD or len(self._taken) > _MAX_LINES
            if line.text is None or is_long:
                raise csv.Error
            yield decode(line.text)
        self._exhausted = True

    def __iter__(self) -> Iterator[tuple[list[str], str | None, int]]:
        """Yield the cells of each record, its problem or None, and the offset of its end."""
        while True:
            self._taken = []
            try:
                cells = next(self._reader)
            except StopIteration:
                return
            except csv.Error:
                yield self._give_up(_TOO_LONG)
            else:
                yield self._give_up(_NOT_CLOSED) if self._exhausted else (cells, None, self._taken[-1].end)

    def _give_up(self, problem: str) -> tuple[list[str], str, int]:
        """Continue after the first line of the record. Return its cells."""
        first, *others = self._taken
        self._lines.push_back(others)
        self._restart()
        text = decode(first.text or b"").strip()
        return [cell[:_MAX_SHOWN] for cell in text.split(self._delimiter)], problem, first.end


def header(head: bytes) -> tuple[list[str], str, int]:
    """Return the columns in the first line that is not empty, the delimiter, and the offset of the first record."""
    lines = Lines(iter([head]), 0)
    delimiter = ""
    for line in lines:
        text = decode(line.text or b"").removeprefix("\ufeff")
        if separator := _SEPARATOR.fullmatch(text):
            delimiter = separator[1]
        elif text.strip():
            delimiter = delimiter or _delimiter_of(text)
            lines.push_back([line])
            break
    cells, problem, offset = next(iter(_Reader(lines, delimiter or ",")), ([], None, 0))
    if not cells:
        raise ReadError("The file is empty.")
    if problem or (offset >= len(head) >= HEAD):
        raise ReadError("The first line is too long, or has a quotation mark that is never closed.")
    if any("\0" in cell for cell in cells):
        raise ReadError("This is not a text file. Import a CSV, JSON or SQL file.")
    if len(cells) > MAX_COLUMNS:
        raise ReadError(f"The first line has more than {MAX_COLUMNS} columns. Leave out those that links do not need.")
    return _distinct([cells[0].removeprefix("\ufeff"), *cells[1:]]), delimiter, offset


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


def csv_records(lines: Lines, columns: list[str], delimiter: str) -> Iterator[Record]:
    """Yield the records, without empty lines."""
    for cells, malformed, offset in _Reader(lines, delimiter):
        extra = cells[len(columns) :]
        names = chain(columns, (f"column {len(columns) + number}" for number in range(1, _MAX_EXTRA + 1)))
        problem = malformed
        if any(map(str.strip, extra)):
            problem = problem or f"has {len(cells)} columns, but the first line has {len(columns)}. Quote the cells."
        if problem or any(map(str.strip, cells)):
            yield Record(dict(zip(names, cells, strict=False)), problem, offset)
