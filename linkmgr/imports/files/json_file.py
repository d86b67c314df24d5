"""Records of a JSON file: an array of objects, or one object on each line."""

import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import orjson

from linkmgr.imports.files import text
from linkmgr.imports.files.text import HEAD, Buffer, Head, Record, mended
from linkmgr.imports.rows import ReadError

_MAX_SHOWN = 500  # characters of a malformed record
_GAP = re.compile(r"[ \t\r\n,]*")
# A string as a whole, a bracket, a comma, or the quotation mark of a string that continues behind the buffer.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},"]', re.DOTALL)
_decode = json.JSONDecoder().raw_decode


def parse(text: str) -> Record:
    """Return the members of an object, or a problem."""
    shown = mended(text.strip())
    try:
        value = orjson.loads(shown)
    except orjson.JSONDecodeError:
        return Record({"row": shown[:_MAX_SHOWN]}, "is not valid JSON.")
    if not isinstance(value, dict):
        return Record({"row": shown[:_MAX_SHOWN]}, "is not a JSON object with the members of a link.")
    return Record(value)


def json_lines(file: TextIO) -> Iterator[Record | None]:
    """Yield the records, and None for each line that is empty."""
    for line in text.lines(file):
        if len(line) > text.MAX_RECORD:
            yield Record({}, "is longer than 1 MiB. Shorten it.")
        else:
            yield parse(line) if line.strip() else None


def array_start(text: str) -> int:
    """Return the place behind the bracket of the array at the top, or of the first array of objects, or 0."""
    before = None
    for token in _TOKEN.finditer(text):
        if len(token[0]) > 1:
            continue
        if token[0] == "[" and before is None:
            return token.end()
        if token[0] == "{" and before and before[0] == "[" and not text[before.end() : token.start()].strip():
            return before.end()
        before = token
    return 0


def json_elements(file: TextIO) -> Iterator[Record | None]:
    """Yield the elements of an array, and None after each piece of the file."""
    buffer = Buffer(file)
    while buffer.waiting < HEAD and not buffer.ended:
        buffer.grow()
        yield None
    buffer.at = array_start(buffer.text)
    if not buffer.at:
        raise ReadError("The file has no array of links. Import a JSON array, or one JSON object on each line.")
    while True:
        gap = _GAP.match(buffer.text, buffer.at)
        buffer.at = gap.end() if gap else buffer.at
        if buffer.waiting and buffer.text[buffer.at] in "]}":
            return
        end = _end(buffer)
        if end == len(buffer.text) and not buffer.ended:  # the element may continue
            buffer.grow()
            yield None
        elif not buffer.waiting:
            return
        elif end:
            yield parse(buffer.text[buffer.at : end])
            buffer.at = end
        else:
            shown = buffer.text[buffer.at : buffer.at + _MAX_SHOWN]
            yield Record(
                {"row": mended(shown.strip())}, "is incomplete, because the file ends inside it. Send the whole file."
            )
            return


def _end(buffer: Buffer) -> int:
    """Return the end of the next element, the end of the buffer if it may continue behind it, or 0 if the file ends
    inside the element."""
    try:
        return int(_decode(buffer.text, buffer.at)[1])
    except (ValueError, RecursionError):
        end = _end_of_malformed(buffer)
    if end or buffer.ended:
        return end
    if buffer.waiting > text.MAX_RECORD:
        raise ReadError("A row is longer than 1 MiB, or has a string that is never closed. Correct the file.")
    return len(buffer.text)


def _end_of_malformed(buffer: Buffer) -> int:
    """Return the end of the element at the position, or 0 if it does not end in the buffer."""
    depth = 0
    for token in _TOKEN.finditer(buffer.text, buffer.at):
        if token[0] == '"':
            return 0
        if not depth and token[0] in ",]}":
            return token.start()
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if not depth and token[0] in "]}":
            return token.end()
    return 0


def first_records(head: Head, has_target: Callable[[dict[str, Any]], bool]) -> tuple[str, list[dict[str, Any]]]:
    """Return the format, and the records in the first text of a file that begins with a bracket."""
    file = io.StringIO(head.text, newline="")
    first_line = next(filter(str.strip, text.lines(file))).strip()
    file.seek(0)
    objects = [record.values for record in json_lines(file) if record and not record.problem]
    is_object = first_line.startswith("{") and first_line.endswith("}") and objects
    if is_object and (len(objects) > 1 or has_target(objects[0]) or not array_start(head.text)):
        return "jsonl", objects
    elements: list[dict[str, Any]] = []
    try:
        elements += (record.values for record in json_elements(io.StringIO(head.text)) if record and not record.problem)
    except ReadError:
        if head.is_whole:
            raise
    if not elements and not head.is_whole:
        raise ReadError("The file has no link in its first 64 KiB. Import an array of links.")
    return "json", elements
