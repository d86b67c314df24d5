"""The experiments of a link of an exported account."""

import re
from datetime import datetime
from typing import Any

import orjson
from marshmallow import ValidationError

from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.visits.variants import Variants

_MAX, _MAX_BYTES = 20, 64 << 10  # more than a link keeps
_MAX_NUMBER = 1_000_000_000
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?\+00:00")


def restored(sent: Any, variants: list[Row]) -> list[Row] | None:
    """Return the experiments of a link that has these variants now, or None if they cannot be
    those: the link then begins its first one."""
    if not isinstance(sent, list) or not 0 < len(sent) <= _MAX or len(orjson.dumps(sent)) > _MAX_BYTES:
        return None
    try:
        history = [_experiment(experiment) for experiment in sent]
    except (AppError, ValidationError, AttributeError, ValueError):
        return None
    numbers = [experiment["number"] for experiment in history]
    running = [experiment["variants"] for experiment in history if experiment["ended"] is None]
    is_last = history[-1]["ended"] is None or not variants
    is_same = numbers == sorted(set(numbers)) and running == ([variants] if variants else []) and is_last
    return history if is_same else None


def _experiment(sent: Any) -> Row:
    number, ended = sent.get("number"), sent.get("ended")
    variants = Variants().deserialize(sent.get("variants"))
    if not variants or type(number) is not int or not 0 < number <= _MAX_NUMBER:
        raise ValueError
    return {
        "number": number,
        "started": _time(sent.get("started")),
        "ended": None if ended is None else _time(ended),
        "variants": variants,
    }


def _time(text: Any) -> str:
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        raise ValueError
    datetime.fromisoformat(text)
    return text
