"""A parser that rejects JSON that parsers interpret differently, and strings that PostgreSQL cannot
store."""

import json
import re
from codecs import BOM_UTF8
from typing import Any, NoReturn

from linkmgr.core.errors import AppError

_MAX_DEPTH = 32
_TOO_DEEP = f"it is nested more than {_MAX_DEPTH} levels deep"
_MAX_DIGITS = 100  # of an integer; no field accepts one as long
_BYTE_ORDER_MARK = "it begins with a byte order mark. Remove the mark"
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotJson(ValueError):
    """The body is not JSON. The message is the reason."""


def _rejected(reason: str) -> AppError:
    return AppError("invalid", problems=f"The body cannot be read: {reason}")


def is_storable(text: str) -> bool:
    return "\0" not in text and (text.isascii() or not _SURROGATE.search(text))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _rejected("an object contains a member twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise _rejected(f"{name} is not a JSON value")


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise _rejected("a number is too large")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _rejected("a number is too large")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_refuse_constant, parse_int=_integer, parse_float=_finite
)


def _check_strings(value: Any, depth: int = 0) -> None:
    if depth > _MAX_DEPTH:
        raise _rejected(_TOO_DEEP)
    if isinstance(value, str):
        if not is_storable(value):
            raise _rejected("a string contains a NUL character or an unpaired surrogate")
    elif isinstance(value, dict):
        for name, member in value.items():
            _check_strings(name, depth)
            _check_strings(member, depth + 1)
    elif isinstance(value, list):
        for member in value:
            _check_strings(member, depth + 1)


def parse(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in a body. An empty body is an empty object."""
    if not raw.strip():
        return {}
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
        # Only an escape stands for a NUL character or a surrogate, and small bodies have few
        # brackets.
        if b"\\u" in raw or raw.count(b"{") + raw.count(b"[") > _MAX_DEPTH:
            _check_strings(value)
    except json.JSONDecodeError as error:
        reason = _BYTE_ORDER_MARK if raw.startswith(BOM_UTF8) else f"syntax error at character {error.pos}"
        raise NotJson(f"The body is not valid JSON: {reason}") from None
    except UnicodeDecodeError:
        raise NotJson("The body is not valid UTF-8") from None
    except RecursionError:
        raise _rejected(_TOO_DEEP) from None
    if not isinstance(value, dict):
        raise AppError("invalid", problems="The body must be a JSON object")
    return value
