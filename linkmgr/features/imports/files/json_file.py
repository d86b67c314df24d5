"""Entries of a JSON file: an array of objects, or one object on each line."""

import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import orjson

from linkmgr.features.imports.files import text
from linkmgr.features.imports.files.text import HEAD, Buffer, Entry, Head, mended
from linkmgr.features.imports.rows import ReadError, Unreadable

_MAX_QUOTED = 500  # characters of a malformed entry
_GAP = re.compile(r"[ \t\r\n,]*")
# Up to the array at the top, or the first one of objects, which is not part of a string.
_ARRAY = re.compile(r'\s*+\[|(?:[^"\[]++|"(?:[^"\\]++|\\.)*+"|\[(?!\s*+\{))*+\[', re.DOTALL)
_MALFORMED = "is not valid JSON, is incomplete, or is longer than 2 MiB. Correct the file."
_decode = json.JSONDecoder().raw_decode


def parse(text: str) -> Entry:
    quoted = mended(text.strip())
    try:
        return to_entry(orjson.loads(quoted), quoted)
    except orjson.JSONDecodeError:
        return Entry({"row": quoted[:_MAX_QUOTED]}, "is not valid JSON.")


def to_entry(value: Any, quoted: str) -> Entry:
    if isinstance(value, dict):
        return Entry(value)
    return Entry({"row": quoted[:_MAX_QUOTED]}, "is not a JSON object with the members of a link.")


def json_lines(file: TextIO) -> Iterator[Entry | None]:
    return map(_parse_line, text.lines(file))


def _parse_line(line: str) -> Entry | None:
    return parse(line) if line.strip() else None


def json_elements(file: TextIO) -> Iterator[Entry | None]:
    """Yield the elements of an array, and None after each piece of the file."""
    buffer = Buffer(file)
    while buffer.waiting < HEAD and not buffer.ended:
        buffer.grow(Unreadable(_MALFORMED))
        yield None
    array = _ARRAY.match(buffer.text)
    if not array:
        raise ReadError(
            "The file has no array of links. Import a JSON array, or one JSON object on each line."
        )
    buffer.at = array.end()
    while True:
        gap = _GAP.match(buffer.text, buffer.at)
        buffer.at = gap.end() if gap else buffer.at
        if buffer.waiting and buffer.text[buffer.at] in "]}":
            return
        if end := _end(buffer):
            yield parse(buffer.text[buffer.at : end])
            buffer.at = end
        elif not buffer.ended:
            buffer.grow(Unreadable(_MALFORMED))
            yield None
        elif buffer.waiting:
            raise Unreadable(_MALFORMED)
        else:
            return


def _end(buffer: Buffer) -> int | None:
    """Return the end of the next element, or None if it is malformed or may continue behind the
    buffer."""
    try:
        end = _decode(buffer.text, buffer.at)[1]
    except (ValueError, RecursionError):
        return None
    return None if end == len(buffer.text) and not buffer.ended else end


def has_array(text: str) -> bool:
    return _ARRAY.match(text) is not None


def first_objects(read: Callable[[TextIO], Iterator[Entry | None]], head: Head) -> list[dict[str, Any]]:
    objects = list[dict[str, Any]]()
    try:
        objects += (
            entry.values for entry in read(io.StringIO(head.text, newline="")) if entry and not entry.problem
        )
    except (ReadError, Unreadable) as error:
        if head.is_whole and isinstance(error, ReadError):
            raise
    return objects
