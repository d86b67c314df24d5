"""Entry points of the readers."""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from linkmgr.imports.rows import ImportRow


class Recognized(NamedTuple):
    """The form of a file, recognized by its first bytes."""

    source: str | None  # a name of FILE_SOURCES, or None: a mapping is required
    format: str  # csv, json, jsonl or sql
    columns: list[str]  # as the file has them
    delimiter: str  # of CSV, else empty
    encoding: str
    mapping: dict[str, str]  # members of rows.MEMBERS to columns


FILE_SOURCES = ("bitly", "dub", "kutt", "linkmgr", "rebrandly", "shlink", "shortio", "yourls")
WITH_VISITS = ("shlink", "yourls")  # sources whose visits follow their links
SERVICES = ("bitly", "kutt", "shlink", "yourls")
HEAD_BYTES = 1 << 16  # recognize() needs at most so many


def recognize(head: bytes) -> Recognized:
    """Return the form of a file, also one packed with gzip. Raise ReadError if it is no text of a known form."""
    raise NotImplementedError


def read(
    stream: BinaryIO, source: str = "auto", mapping: Mapping[str, str] | None = None, position: Any = None
) -> Iterator[ImportRow]:
    """Read the rows of a file after `position`. `mapping` replaces the one of the source.

    The stream must support read(n) and seek(n). Raise ReadError for a file that cannot be read any further.
    """
    raise NotImplementedError


def read_service(source: str, address: str, token: str, position: Any = None) -> Iterator[ImportRow]:
    """Read the rows of a service after `position`. `address` is empty for a service that has only one."""
    raise NotImplementedError
