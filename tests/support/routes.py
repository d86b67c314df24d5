"""Routes that are compiled once. werkzeug compiles two functions for each, and tests make hundreds of services."""

from collections.abc import Callable
from typing import Any

from werkzeug.routing import Rule

_compile = Rule._compile_builder
_compiled: dict[str, Callable[..., tuple[str, str]]] = {}


def _compile_once(rule: Rule, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
    name = repr((rule.rule, rule._trace, rule.defaults, append_unknown))
    if name not in _compiled:
        _compiled[name] = _compile(rule, append_unknown)
    return _compiled[name]


def install() -> None:
    rules: Any = Rule
    rules._compile_builder = _compile_once
