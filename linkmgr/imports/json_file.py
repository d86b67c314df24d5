"""Records of a JSON file: an array of objects, or one object on each line."""

import re
from collections.abc import Iterator
from typing import Any

import orjson

from linkmgr.imports.rows import ReadError
from linkmgr.imports.streams import MAX_RECORD, Lines, Record, decode

_BETWEEN = b" \t\r\n,"
_BOM = b"\xef\xbb\xbf"
_MAX_SHOWN = 500  # characters of a malformed record
# A string as a whole, a bracket, or the quotation mark of a string that continues behind the buffer.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}"]', re.DOTALL)


def parse(text: bytes) -> tuple[dict[str, Any], str | None]:
    """Return the members of an object, and a problem or None."""
    shown = decode(text).strip()
    try:
        value = orjson.loads(shown)
    except orjson.JSONDecodeError:
        return {"row": shown[:_MAX_SHOWN]}, "is not valid JSON."
    if not isinstance(value, dict):
        return {"row": shown[:_MAX_SHOWN]}, "is not a JSON object with the members of a link."
    return value, None


def json_lines(lines: Lines) -> Iterator[Record]:
    for line in lines:
        if line.text is None:
            yield Record({}, "is longer than 1 MiB. Shorten it.", line.end)
        elif text := line.text.removeprefix(_BOM).strip():
            yield Record(*parse(text), line.end)


class _Scanner:
    """The brackets of a JSON text that are outside strings. `buffer` begins after the last cut."""

    def __init__(self, texts: Iterator[bytes], offset: int) -> None:
        self._texts, self.offset, self.buffer, self.position = texts, offset, b"", 0

    def next_bracket(self) -> bytes:
        """Return the next bracket, which ends at `position`, or nothing at the end of the file."""
        while True:
            token = _TOKEN.search(self.buffer, self.position)
            if token and token[0] != b'"':
                self.position = token.end()
                if len(token[0]) == 1:
                    return token[0]
                continue
            self.position = token.start() if token else len(self.buffer)
            if len(self.buffer) > MAX_RECORD:
                raise ReadError("A row is longer than 1 MiB, or has a string that is never closed. Correct the file.")
            text = next(self._texts, b"")
            if not text:
                return b""
            self.buffer += text

    def cut(self) -> bytes:
        """Remove and return the buffer up to `position`."""
        text, self.buffer = self.buffer[: self.position], self.buffer[self.position :]
        self.offset += self.position
        self.position = 0
        return text

    def enter_array(self) -> bool:
        """Move into the array at the top, or into the first array of objects. Return False if there is none."""
        first, before = True, b""
        while bracket := self.next_bracket():
            if bracket == b"[" and first:
                self.cut()
                return True
            if bracket == b"{" and before == b"[" and not self.buffer[: self.position - 1].strip():
                self.position = 0
                return True
            self.cut()
            first, before = False, bracket
        return False

    def element(self) -> bytes:
        """Return the element that begins with the last bracket, or nothing if the file ends inside it."""
        depth = 1
        while depth:
            bracket = self.next_bracket()
            if not bracket:
                return b""
            depth += 1 if bracket in b"[{" else -1
        return self.cut().lstrip(_BETWEEN)


def json_elements(texts: Iterator[bytes], offset: int) -> Iterator[Record]:
    """Yield the elements of an array."""
    scanner = _Scanner(texts, offset)
    if not offset and not scanner.enter_array():
        raise ReadError("The file has no array of links. Import a JSON array, or one JSON object on each line.")
    while bracket := scanner.next_bracket():
        scanner.position -= 1
        if scanner.buffer[: scanner.position].strip(_BETWEEN):
            yield Record(*parse(scanner.cut().strip(_BETWEEN)), scanner.offset)
        if bracket in b"]}":
            return
        scanner.position += 1
        if not (text := scanner.element()):
            break
        yield Record(*parse(text), scanner.offset)
    if rest := scanner.buffer.strip(_BETWEEN):
        yield Record(
            {"row": decode(rest[:_MAX_SHOWN])},
            "is incomplete, because the file ends inside it. Send the whole file.",
            scanner.offset + len(scanner.buffer),
        )
