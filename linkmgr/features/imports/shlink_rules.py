"""Redirect rules of Shlink as rules of a link. All conditions of a rule must hold in both.

https://shlink.io/documentation/advanced/dynamic-rule-based-redirects-system, and
https://api-spec.shlink.io, GET /short-urls/{shortCode}/redirect-rules
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from linkmgr.core.database.statements import Row
from linkmgr.features.imports import figures
from linkmgr.features.imports.rows import Inactive

# Names of devices and browsers as `Conditions` compares them
_DESKTOPS = ["windows", "mac", "linux", "chrome os"]
_DEVICES = {
    "android": ["android"], "ios": ["ios"], "mobile": ["android", "ios"], "windows": ["windows"], "macos": ["mac"],
    "linux": ["linux"], "chromeos": ["chrome os"], "desktop": _DESKTOPS,
}  # fmt: skip
_BROWSERS = {
    "chrome": ["Chrome", "Chrome Mobile", "Chrome Mobile iOS"],
    "firefox": ["Firefox", "Firefox Mobile", "Firefox iOS"],
    "edge": ["Edge", "Edge Mobile"],
    "safari": ["Safari", "Mobile Safari"],
    "opera": ["Opera", "Opera Mobile", "Opera Mini", "Opera Touch"],
    "android": ["Android"],
    "androidbrowser": ["Android"],
}
_PARTS = 4  # of an IPv4 address
_QUOTED = 100  # characters of a text in a message
_SECOND = timedelta(seconds=1)

Condition = tuple[str, Any]  # its name and value


class _Unknown(ValueError):
    """The end of a sentence that begins with a rule."""


def rules_of(rules: list[Row]) -> list[Row]:
    """Return the rules in the order of their priorities."""
    numbers = [rule.get("priority") for rule in rules]
    if all(isinstance(number, int) for number in numbers):
        rules = sorted(rules, key=lambda rule: int(rule["priority"]))
    return [_rule(number, rule) for number, rule in enumerate(rules, start=1)]


def _rule(number: int, rule: Row) -> Row:
    url, conditions = rule.get("longUrl"), rule.get("conditions")
    try:
        if not conditions or not isinstance(conditions, list):
            raise _Unknown("which has no conditions")
        when: Row = {}
        for condition in conditions:
            _add(when, condition)
    except _Unknown as problem:
        raise Inactive(
            f"has the redirect rule {number} to {str(url)[:_QUOTED]}, {problem}. Leave the row "
            "out, or empty its columns 'hasRedirectRules' and 'redirectRules'."
        ) from None
    return {"when": when, "url": url}


def _add(when: Row, condition: Any) -> None:
    kind = condition.get("type") if isinstance(condition, dict) else None
    convert = _CONDITIONS.get(kind) if isinstance(kind, str) else None
    if convert is None:
        raise _Unknown(f"whose condition '{str(kind)[:_QUOTED]}' is unknown here")
    key, value = (str(condition.get(name) or "").strip() for name in ("matchKey", "matchValue"))
    name, names = convert(key, value)
    if not names:
        raise _Unknown(
            f"whose condition '{kind}' has the value '{(key or value)[:_QUOTED]}', which is unknown here"
        )
    earlier = when.get(name, {})
    if name == "dates" and not earlier.keys() & names.keys():
        when[name] = {**earlier, **names}
    elif name in when and earlier != names:
        raise _Unknown(
            f"two of whose conditions are about '{name}', and must hold together: here, one of them would do"
        )
    else:
        when[name] = names


def _named(name: str, names: dict[str, list[str]]) -> Callable[[str, str], Condition]:
    return lambda _, value: (name, names.get(re.sub("[^a-z]", "", value.lower())))


def _text(name: str) -> Callable[[str, str], Condition]:
    return lambda _, value: (name, [value] if value else None)


def _parameter(mark: str, *, has_value: bool = False) -> Callable[[str, str], Condition]:
    """Return a converter of a parameter, whose name may have no =, which ends it here."""
    return lambda key, value: (
        "query", [f"{key}{mark}{value if has_value else ''}"] if key and "=" not in key else None
    )  # fmt: skip


def _network(_: str, value: str) -> Condition:
    """Convert an address, a network, or an address with * at its end, such as 192.168.*.*"""
    parts = value.split(".")
    fixed = [part for part in parts if part != "*"]
    if "*" not in value:
        return "ip", [value] if value else None
    if len(parts) != _PARTS or parts[: len(fixed)] != fixed or "*" in "".join(fixed):
        return "ip", None
    zeros = ["0"] * (_PARTS - len(fixed))
    return "ip", [f"{'.'.join(fixed + zeros)}/{8 * len(fixed)}"]


def _date(end: str, offset: timedelta) -> Callable[[str, str], Condition]:
    def convert(_: str, value: str) -> Condition:
        try:
            text = figures.utc(value)
            return "dates", {end: str(datetime.fromisoformat(text) + offset)} if text else None
        except (ValueError, OverflowError):
            return "dates", None

    return convert


_CONDITIONS = {
    "device": _named("device", _DEVICES),
    "language": _text("language"),
    "query-param": _parameter("=", has_value=True),
    "any-value-query-param": _parameter(""),
    "valueless-query-param": _parameter("="),
    "ip-address": _network,
    "geolocation-country-code": _text("country"),
    "geolocation-city-name": _text("city"),
    "before-date": _date("until", -_SECOND),  # which is included
    "after-date": _date("from", timedelta()),
    "browser": _named("browser", _BROWSERS),
}
