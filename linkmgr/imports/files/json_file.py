"""Records of a JSON file: an array of objects, or one object on each line."""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from linkmgr.imports.files.text import CHUNK, HEAD, MAX_RECORD, Lines, Record, decode
from linkmgr.imports.rows import ReadError

_MAX_SHOWN = 500  # characters of a malformed record
_GAP = re.compile(r"[ \t\r\n,]*")
# A string as a whole, a bracket, or the quotation mark of a string that continues behind the buffer.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}"]', re.DOTALL)
_NO_BRACKETS = re.compile(r"[^\[\]{},]+")
_decode = json.JSONDecoder().raw_decode


def parse(text: bytes) -> Record:
    """Return the members of an object, or a problem."""
    shown = decode(text).strip()
    try:
        value = orjson.loads(shown)
    except orjson.JSONDecodeError:
        return Record({"row": shown[:_MAX_SHOWN]}, "is not valid JSON.")
    if not isinstance(value, dict):
        return Record({"row": shown[:_MAX_SHOWN]}, "is not a JSON object with the members of a link.")
    return Record(value)


def json_lines(lines: Lines) -> Iterator[Record | None]:
    """Yield the records, and None after each piece of the file."""
    while lines.ready or not lines.ended:
        while lines.ready:
            line = lines.ready.popleft()
            if line is None:
                yield Record({}, "is longer than 1 MiB. Shorten it.")
            elif text := line.removeprefix(codecs.BOM_UTF8).strip():
                yield parse(text)
        if not lines.ended:
            lines.fill()
            yield None


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


class _Buffer:
    """Text of the file from a position on."""

    def __init__(self, texts: Iterator[bytes]) -> None:
        self._texts, self._decoder = texts, codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.text, self.at, self.ended = "", 0, False

    def grow(self) -> None:
        piece = next(self._texts, b"")
        self.ended = not piece
        if self.at > CHUNK:
            self.text, self.at = self.text[self.at :], 0
        self.text += self._decoder.decode(piece, final=self.ended)

    @property
    def waiting(self) -> int:
        return len(self.text) - self.at

    def cut(self, end: int) -> bytes:
        """Remove and return the text up to `end`."""
        start, self.at = self.at, end
        return self.text[start:end].encode(errors="surrogateescape")

    def end_of_element(self) -> int:
        """Return the end of the element at the position, also of a malformed one, or 0 if it does not end here."""
        if other := _NO_BRACKETS.match(self.text, self.at):
            return other.end() if other.end() < len(self.text) else 0
        depth = 0
        for token in _TOKEN.finditer(self.text, self.at):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
            if not depth or token[0] == '"':
                return 0 if token[0] == '"' else token.end()
        return 0


def json_elements(texts: Iterator[bytes]) -> Iterator[Record | None]:
    """Yield the elements of an array, and None after each piece of the file."""
    buffer = _Buffer(texts)
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
        if end < len(buffer.text) or buffer.ended:
            if not buffer.waiting:
                return
            if not end:
                break
            yield parse(buffer.cut(end))
        else:
            buffer.grow()
            yield None
    problem = "is incomplete, because the file ends inside it. Send the whole file."
    yield Record({"row": decode(buffer.cut(buffer.at + _MAX_SHOWN))}, problem)


def _end(buffer: _Buffer) -> int:
    """Return the end of the next element, the end of the buffer if it may continue behind it, or 0 if the file ends
    inside the element."""
    try:
        return int(_decode(buffer.text, buffer.at)[1])
    except (ValueError, RecursionError):
        end = buffer.end_of_element()
    if end or buffer.ended:
        return end
    if buffer.waiting > MAX_RECORD:
        raise ReadError("A row is longer than 1 MiB, or has a string that is never closed. Correct the file.")
    return len(buffer.text)


def first_records(head: bytes, has_target: Callable[[dict[str, Any]], bool]) -> tuple[str, list[dict[str, Any]]]:
    """Return the format, and the records in the first bytes of a file that begins with a bracket."""
    objects = [record.values for record in json_lines(Lines(iter([head]))) if record and not record.problem]
    first_line = head.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")[0].strip()
    is_object = first_line.startswith(b"{") and first_line.endswith(b"}") and objects
    if is_object and (len(objects) > 1 or has_target(objects[0]) or not array_start(decode(head))):
        return "jsonl", objects
    elements: list[dict[str, Any]] = []
    try:
        elements += (record.values for record in json_elements(iter([head])) if record and not record.problem)
    except ReadError:
        if len(head) < HEAD:
            raise
    if not elements and len(head) >= HEAD:
        raise ReadError("The file has no link in its first 64 KiB. Import an array of links.")
    return "json", elements
