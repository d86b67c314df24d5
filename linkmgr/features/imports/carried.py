"""Columns of services that become members in another form than theirs."""

from collections.abc import Callable, Container
from datetime import UTC, datetime
from typing import Any

import orjson

from linkmgr.core.database.statements import Row
from linkmgr.features.imports import figures
from linkmgr.features.imports.cells import MAX_TEXT, Cells
from linkmgr.features.imports.rows import Inactive, Unreadable
from linkmgr.features.imports.shlink_rules import rules_of

# Normalized columns of targets for devices
_APPLE, _ANDROID = ("iphone", "ipad"), ("android",)
DEVICES = {"ios": _APPLE, "iphoneurl": _APPLE, "android": _ANDROID, "androidurl": _ANDROID}

_WEIGHTS = range(1, 101)


def members_of(values: Cells, columns: Container[str]) -> Row:
    """Return the members that the columns of a service become. One that is empty or absent becomes none."""
    members: Row = {}
    for column, convert in _MEMBERS.items():
        if column in columns and values.text(column) not in ("", "[]"):
            members |= convert(values, column)
    if targets := _device_targets(values):
        members["devicetarget"] = targets
    return members


def _device_targets(values: Cells) -> list[Row]:
    return [
        {"device": device, "link": values.text(column)}
        for column, devices in DEVICES.items()
        for device in devices
        if values.text(column).startswith(("http://", "https://"))
    ]


def _objects(values: Cells, column: str) -> list[Row]:
    text = values.text(column)
    try:
        elements = orjson.loads(text) if len(text) <= MAX_TEXT else None
    except orjson.JSONDecodeError:
        elements = None
    if not isinstance(elements, list) or not all(isinstance(element, dict) for element in elements):
        raise Unreadable(f"has a '{values.name(column)}' that is no JSON array of objects. Correct it.")
    return elements


def _rules(values: Cells, column: str) -> Row:
    return {"rules": rules_of(_objects(values, column))}


def _test(values: Cells, column: str) -> Row:
    """Return the variants of a test that is running. After its end, the target is that of the link."""
    times = ("teststartedat", "testcompletedat")
    starts, ends = (figures.time(values.text(name), "a time of a test", end_of_day=False) for name in times)
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    if ends and ends <= now:
        return {}
    if starts and starts > now:
        raise Inactive(
            f"has a test that begins on {starts}, and would begin now. Leave the row out, or empty "
            f"its column '{values.name(column)}'."
        )
    tested = _objects(values, column)
    weights = [_weight(variant.get("percentage")) for variant in tested]
    if None in weights:
        name = values.name(column)
        raise Unreadable(f"has a '{name}' whose percentages are not integers from 1 to 100. Correct them.")
    numbered = enumerate(zip(tested, weights, strict=True), start=1)
    variants = [
        {"name": f"Variant {number}", "url": variant.get("url"), "weight": weight}
        for number, (variant, weight) in numbered
    ]
    return {"variants": variants}


def _weight(percentage: Any) -> int | None:
    is_weight = not isinstance(percentage, bool) and percentage in _WEIGHTS
    return int(percentage) if is_weight else None


_MEMBERS: dict[str, Callable[[Cells, str], Row]] = {"redirectrules": _rules, "testvariants": _test}
