"""Bodies as one JSON object, strictly: what two readers could read differently is refused, and so is what
PostgreSQL cannot store."""

import json
import re
from typing import Any, NoReturn

from linkmgr.web.errors import AppError

_DEEPEST = 32
_MAX_DIGITS = 100  # of a whole number: far more than any that fits anywhere
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Unreadable(ValueError):
    """Ends the sentence "The body cannot be read: "."""


def storable(text: str) -> bool:
    return "\0" not in text and (text.isascii() or not _SURROGATE.search(text))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Unreadable("it names a member twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise _Unreadable(f"{name} is not a JSON value")


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise _Unreadable("a number is too large")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _Unreadable("a number is too large")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_refuse_constant, parse_int=_integer, parse_float=_finite
)


def _check_texts(value: Any, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise _Unreadable("it is nested too deeply")
    if isinstance(value, str):
        if not storable(value):
            raise _Unreadable("a text holds a NUL or half a surrogate pair")
    elif isinstance(value, dict):
        for name, member in value.items():
            _check_texts(name, depth)
            _check_texts(member, depth + 1)
    elif isinstance(value, list):
        for member in value:
            _check_texts(member, depth + 1)


def parse(raw: bytes) -> dict[str, Any]:
    """An empty body is an empty object."""
    if not raw.strip():
        return {}
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
        _check_texts(value)
    except _Unreadable as error:
        problem = f"The body cannot be read: {error}"
    except json.JSONDecodeError as error:
        problem = f"The body is not JSON: it breaks at character {error.pos}"
    except UnicodeDecodeError:
        problem = "The body is not UTF-8"
    except RecursionError:
        problem = "The body cannot be read: it is nested too deeply"
    else:
        if isinstance(value, dict):
            return value
        problem = "The body must be a JSON object"
    raise AppError("invalid", problems=problem)
