"""Columns of services that become members in another form than theirs."""

import re
from collections.abc import Callable, Set
from datetime import UTC, datetime
from typing import Any

import orjson

from linkmgr.core.database.statements import Row
from linkmgr.features.imports import figures
from linkmgr.features.imports.cells import MAX_TEXT, Cells
from linkmgr.features.imports.rows import Inactive, Unreadable
from linkmgr.features.imports.shlink_rules import rules_of
from linkmgr.features.imports.states import is_true
from linkmgr.visits.targets import pairs_of

# Normalized columns of targets for devices
_APPLE, _ANDROID = ("iphone", "ipad"), ("android",)
DEVICES = {"ios": _APPLE, "iphoneurl": _APPLE, "android": _ANDROID, "androidurl": _ANDROID}
_FOLDERS = ("foldername", "folder", "folders")
_UTM = {f"utm{part}": f"utm_{part}" for part in ("source", "medium", "campaign", "term", "content")}
# URLs that open the app of a store, and those that open its pages
_STORES = {
    _APPLE: (re.compile(r"itms(?:-appss?|s)?://(\S+)"), "apple", "https://"),
    _ANDROID: (re.compile(r"market://(details\S+)"), "google", "https://play.google.com/store/apps/"),
}
_OF_APP = re.compile(r"[a-z][a-z0-9+.-]*:\S+", re.IGNORECASE)
_WEIGHTS = range(1, 101)
_HALF = 50  # percent


def members_of(values: Cells, columns: Set[str], url: str) -> Row:
    """Return the members that some columns of a service become. One that is empty or absent becomes
    none. `url` is the target."""
    members: Row = {}
    for column, convert in _MEMBERS.items():
        if column in columns and values.text(column) not in ("", "[]"):
            members |= convert(values, column)
    if "spliturl" in columns and values.text("spliturl"):
        members |= _split(values, url)
    targets, stores = _device_targets(values, columns)
    own = pairs_of(url.partition("#")[0].partition("?")[2])
    utm = [(name, values.text(column)) for column, name in _UTM.items() if column in columns]
    lists = {
        "devicetarget": targets,
        "parameters": [
            {"name": name, "value": text} for name, text in utm if text and (name, text) not in own
        ],
    }
    if stores:
        members["deeplink"] = {"auto": True, **stores}
    return members | {name: elements for name, elements in lists.items() if elements}


def folders_of(values: Cells, columns: Set[str]) -> list[str]:
    """Return the name of the folder, or one with its id."""
    names = [values.text(column) for column in _FOLDERS if column in columns]
    number = values.text("folderid") if "folderid" in columns else ""
    named = [*filter(None, names), *([f"Folder {number}"] if number else [])]
    return named[:1]


def _device_targets(values: Cells, columns: Set[str]) -> tuple[list[Row], dict[str, str]]:
    """Return targets for devices, and the pages of apps by store."""
    targets, stores = list[Row](), dict[str, str]()
    for column, devices in DEVICES.items():
        text = values.text(column) if column in columns else ""
        pattern, store, pages = _STORES[devices]
        if text.startswith(("http://", "https://")):
            targets += [{"device": device, "link": text} for device in devices]
        elif opened := pattern.fullmatch(text):
            stores[store] = pages + opened[1]
        elif _OF_APP.fullmatch(text):
            raise Unreadable(
                f"has a '{values.name(column)}' that opens an app and is no page of a store. Fill "
                "in an https:// URL, or leave it empty."
            )
    return targets, stores


def _split(values: Cells, url: str) -> Row:
    text = values.text("splitpercent") or str(_HALF)
    percent = int(text) if re.fullmatch("[0-9]{1,2}", text, re.ASCII) else 0
    if not percent:
        name = values.name("splitpercent")
        raise Unreadable(f"has a '{name}' that is not an integer from 1 to 99. Correct it.")
    others = {"name": "Split", "url": values.text("spliturl"), "weight": percent}
    return {"variants": [{"name": "Original", "url": url, "weight": 100 - percent}, others]}


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
    """Return the variants of a test that is running. After its end, the target is that of the
    link."""
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


def _frame(values: Cells, column: str) -> Row:
    return {"type": "frame"} if is_true(values.text(column)) else {}


def _forwarding(values: Cells, column: str) -> Row:
    return {"forwardquery": not is_true(values.text(column))}


_MEMBERS: dict[str, Callable[[Cells, str], Row]] = {
    "redirectrules": _rules,
    "testvariants": _test,
    "cloaking": _frame,
    "rewrite": _frame,
    "skipqs": _forwarding,
}
