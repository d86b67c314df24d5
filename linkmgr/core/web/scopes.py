"""Scopes of API keys: what each operation needs, and what a key gives.

A scope is a word and an action, such as `links:read`. The action is `read`, `create`, or `write`,
which includes the two others. Each operation names its scope.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from flask import Flask, request

from linkmgr.core.errors import AppError
from linkmgr.core.settings import this_app
from linkmgr.core.web.caller import Caller, Key

ALL, ADMIN, PUBLIC = "*", "admin", "public"  # PUBLIC needs no key
READ, CREATE, WRITE = "read", "create", "write"


@lru_cache(maxsize=8)
def _names(app: Flask) -> list[str]:
    stated = (getattr(view, "operation", None) for view in app.view_functions.values())
    return [
        ALL,
        *sorted({operation.scope for operation in stated if operation and ":" in operation.scope}),
        ADMIN,
    ]


def names() -> list[str]:
    """Return the scopes of the operations. Call this after all routes are registered."""
    return _names(this_app())


def granted(scopes: list[str]) -> set[str]:
    """Return the scopes that a key with `scopes` has. `*` includes all but `admin`, and `write` the
    others of its word."""
    if ALL in scopes:
        return {*names()} - {ADMIN} | {*scopes}
    words = {scope.partition(":")[0] for scope in scopes if scope.endswith(f":{WRITE}")}
    return {*scopes} | {scope for scope in names() if scope.partition(":")[0] in words}


def has(key: Key | None, scope: str) -> bool:
    if key is None:
        return True
    word = scope.partition(":")[0]
    return scope in key.scopes or f"{word}:{WRITE}" in key.scopes or (ALL in key.scopes and scope != ADMIN)


def require(key: Key, scope: str, limits: Collection[str], selections: Sequence[str]) -> None:
    """Raise an error if a key cannot use the operation of the current request. `limits` are those
    of restricted keys that it allows, and `selections` the parameters of the query of which such a
    key must send one."""
    if not has(key, scope):
        raise AppError("scope_missing", scope=scope)
    if key.is_restricted:
        _require_restricted(key, limits, selections)


def _require_restricted(key: Key, limits: Collection[str], selections: Sequence[str]) -> None:
    """Refuse operations that are not checked for restricted keys."""
    is_allowed = (not key.own_only or "own_only" in limits) and (key.domains is None or "domains" in limits)
    if not is_allowed:
        raise _confined(key)
    if selections and not any(request.args.get(name) for name in selections):
        raise _confined(key, f"Send {', '.join(selections[:-1])} or {selections[-1]}, or use another key.")


def _confined(key: Key, remedy: str = "Use another key.") -> AppError:
    limited = "the rows that it created" if key.domains is None else "some of your branded domains"
    return AppError("key_confined", limited=limited, remedy=remedy)


def require_unrestricted(key: Key | None) -> None:
    if key is not None and key.is_restricted:
        raise _confined(key)


def grantable(caller: Caller | None, *, is_admin: bool) -> dict[str, Any]:
    """Return the limits of keys that a caller may make: those of its own key. None is a user
    without a key."""
    key = caller and caller.key
    if key is None:
        scopes = granted([ALL, ADMIN] if is_admin else [ALL])
        return {"scopes": sorted(scopes), "expires": None, "allowed_ips": None}
    return {
        "scopes": sorted(granted(key.scopes)),
        "expires": key.expires,
        "allowed_ips": key.allowed_ips,
    }


def is_unlimited(caller: Caller) -> bool:
    key = caller.key
    return key is None or (
        ALL in key.scopes
        and (ADMIN in key.scopes or not key.is_admin)
        and not key.is_restricted
        and key.expires is None
        and key.allowed_ips is None
    )
