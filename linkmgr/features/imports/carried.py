"""Columns of services that become members in another form than theirs."""

from collections.abc import Callable, Container
from typing import Any

import orjson

from linkmgr.core.database.statements import Row
from linkmgr.features.imports.cells import MAX_TEXT, Cells
from linkmgr.features.imports.rows import Unreadable
from linkmgr.features.imports.shlink_rules import rules_of

# Normalized columns of targets for devices
_APPLE, _ANDROID = ("iphone", "ipad"), ("android",)
DEVICES = {"ios": _APPLE, "iphoneurl": _APPLE, "android": _ANDROID, "androidurl": _ANDROID}


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


_MEMBERS: dict[str, Callable[[Cells, str], dict[str, Any]]] = {"redirectrules": _rules}
