"""The order in which the rows of a file are stored: our links, those of other hosts, and visits."""

from collections.abc import Iterator
from io import BufferedReader

from linkmgr.core.database.statements import Row
from linkmgr.features.imports import files
from linkmgr.features.imports.account import reading
from linkmgr.features.imports.rows import ImportRow, ReadError
from linkmgr.features.imports.stored_file import open_file

Rows = Iterator[ImportRow | None]


class InOrder:
    """The rows of a file by their place, without those that are stored.

    The file is read once for each place that its rows have, so that a row of a later place need not
    be kept until those before it are stored.
    """

    _file: BufferedReader

    def __init__(self, details: Row) -> None:
        self._details, self._skipped = details, details["found"]
        self._places, self._done = {0}, set[int]()

    def __iter__(self) -> Rows:
        """Yield None after pieces of the file without a row. Raise a ReadError behind the last
        row."""
        problem: ReadError | None = None
        while left := self._places - self._done:
            self._file = open_file(self._details)
            try:
                yield from self._rows(min(left))
            except ReadError as error:
                problem = error
            self._done.add(min(left))
        if problem:
            raise problem

    def _rows(self, current: int) -> Rows:
        def filtered(row: ImportRow | None) -> ImportRow | None:
            if row is None:
                return None
            place = self._place(row)
            self._places.add(place)
            self._skipped -= place == current
            return row if place == current and self._skipped < 0 else None

        return map(filtered, self._read())

    @property
    def _is_account(self) -> bool:
        return bool(self._details["source"] == reading.SOURCE)

    def _read(self) -> Rows:
        if self._is_account:
            return reading.read(self._file)
        return files.read(self._file, self._details["source"], self._details["mapping"])

    def _place(self, row: ImportRow) -> int:
        if self._is_account:  # its lines are in order
            return 0
        return 2 if row.file == "visits" else int(bool(row.foreign_host))

    def bytes_read(self) -> int:
        """Return the part of the work that is done, as a number of bytes of the file."""
        size = int(self._details["size"])
        return min(size, (len(self._done) * size + self._file.raw.tell()) // len(self._places))
