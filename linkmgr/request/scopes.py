"""Scopes of API keys: what each operation needs, and what a key gives.

A scope is a word and an action, such as `links:read`. The word is that of the blueprint. GET needs `read`, a view
`add...` needs `create`, and everything else `write`, which includes the two others.
"""

from functools import cache, lru_cache
from typing import Any

from flask import Flask, request

from linkmgr.errors import AppError
from linkmgr.request.request import Caller, Key, operations
from linkmgr.settings import this_app

ALL, ADMIN = "*", "admin"
READ, CREATE, WRITE = "read", "create", "write"
PUBLIC = ("openapi", "docs")  # blueprints that need no key

# The words of blueprints that have another name; None: the word is the first part of the path after /api/
_WORDS = {"bulk": None, "default_key": "keys", "export": None, "plans": ADMIN, "urls": "links", "users": ADMIN}
_WORDS_OF_PATHS = {"url": "links", "urls": "links"}  # whose word differs
# Scopes of operations that the rule does not describe. The export of the account has everything.
EXCEPTIONS = {("account.read", "POST"): f"account:{READ}", ("export.account", "GET"): ALL}

# Keys with `own_only` or `domains` can use the views of these names, whose statements work on views of the same names
# as the tables (schema.sql). A new view or word is refused until it has been checked and added.
RESTRICTED_VIEWS = {"index", "read", "add", "update", "delete", "assign", "visits", "answers", "rotate"}
RESTRICTED_BLUEPRINTS = {
    "bio", "campaigns", "channels", "domains", "keys", "overlay", "pixels", "qr", "splash", "stats", "urls",
}  # fmt: skip
_SELECTIONS = ("ids", "campaign", "channel", "domain")  # of statistics


@cache
def of(endpoint: str, method: str, rule: str) -> str:
    """Return the scope that an operation needs."""
    method = "GET" if method == "HEAD" else method
    if (endpoint, method) in EXCEPTIONS:
        return EXCEPTIONS[endpoint, method]
    blueprint, _, view = endpoint.partition(".")
    first = rule.split("/")[2]
    word = _WORDS.get(blueprint, blueprint) or _WORDS_OF_PATHS.get(first, first)
    if word == ADMIN:
        return ADMIN
    action = READ if method == "GET" else CREATE if view.startswith("add") else WRITE
    return f"{word}:{action}"


@lru_cache(1)
def _names(app: Flask) -> list[str]:
    scopes = {
        of(rule.endpoint, method, rule.rule)
        for method, rule in operations(app)
        if rule.endpoint.partition(".")[0] not in PUBLIC
    }
    return [ALL, *sorted(scopes - {ALL, ADMIN}), ADMIN]


def names() -> list[str]:
    """Return all scopes."""
    return _names(this_app())


def granted(scopes: list[str]) -> set[str]:
    """Return the scopes that a key with `scopes` has. `*` includes all but `admin`, and `write` the others of its
    word."""
    if ALL in scopes:
        return {*names()} - {ADMIN} | {*scopes}
    words = {scope.partition(":")[0] for scope in scopes if scope.endswith(f":{WRITE}")}
    return {*scopes} | {scope for scope in names() if scope.partition(":")[0] in words}


def has(key: Key | None, scope: str) -> bool:
    """Return True if a key, or the default key, has a scope."""
    if key is None:
        return True
    word = scope.partition(":")[0]
    return scope in key.scopes or f"{word}:{WRITE}" in key.scopes or (ALL in key.scopes and scope != ADMIN)


def require(key: Key) -> None:
    """Raise an error if a key cannot use the operation of the current request."""
    assert request.endpoint
    assert request.url_rule
    scope = of(request.endpoint, request.method, request.url_rule.rule)
    if not has(key, scope):
        raise AppError("scope_missing", scope=scope)
    if key.is_restricted:
        _require_restricted(key, *request.endpoint.split("."))


def _require_restricted(key: Key, blueprint: str, view: str) -> None:
    """Refuse operations that do not know the limits of the key, and those that change what other rows depend on."""
    limited, remedy = (
        "the rows that it created" if key.domains is None else "some of your branded domains",
        "Use another key.",
    )
    is_read = request.method in ("GET", "HEAD")
    is_allowed = blueprint in RESTRICTED_BLUEPRINTS and view in RESTRICTED_VIEWS
    if key.domains is not None and not is_read:
        is_allowed = is_allowed and blueprint in ("urls", "keys")
    if (blueprint, view) == ("stats", "read") and not any(request.args.get(name) for name in _SELECTIONS):
        is_allowed, remedy = False, f"Send {', '.join(_SELECTIONS[:-1])} or {_SELECTIONS[-1]}, or use another key."
    if not is_allowed:
        raise AppError("key_confined", limited=limited, remedy=remedy)


def grantable(caller: Caller | None, *, is_admin: bool) -> dict[str, Any]:
    """Return the limits of keys that a caller may make: those of its own key. None is a user without a key."""
    key = caller and caller.key
    if key is None:
        scopes = granted([ALL, ADMIN] if is_admin else [ALL])
        return {"scopes": sorted(scopes), "domains": None, "own_only": False, "expires": None, "allowed_ips": None}
    return {
        "scopes": sorted(granted(key.scopes)),
        "domains": key.domains,
        "own_only": key.own_only,
        "expires": key.expires,
        "allowed_ips": key.allowed_ips,
    }


def is_unlimited(caller: Caller) -> bool:
    """Return True if the key of a caller allows everything that its user can do."""
    key = caller.key
    return key is None or (
        ALL in key.scopes
        and (ADMIN in key.scopes or not key.is_admin)
        and not key.is_restricted
        and key.expires is None
        and key.allowed_ips is None
    )
