"""Operations of words that do not declare theirs yet."""

from typing import Any

from flask import Flask

from linkmgr.repository.tables import TABLES
from linkmgr.request.scopes import ADMIN, ALL, CREATE, READ, WRITE
from linkmgr.web.operation import PUBLIC, Operation

_WORDS = {"bulk": None, "default_key": "keys", "export": None, "plans": ADMIN, "urls": "links", "users": ADMIN}
_WORDS_OF_PATHS = {"url": "links", "urls": "links"}
RESTRICTED_VIEWS = {"index", "read", "add", "update", "delete", "assign", "visits", "answers", "rotate"}
RESTRICTED_BLUEPRINTS = {
    "bio", "campaigns", "channels", "domains", "keys", "overlay", "pixels", "qr", "splash", "stats", "urls",
}  # fmt: skip
_OF_USERS = ("account", "default_key", "plans", "users")
_WRITERS = ("account", "default_key", "keys", "plans", "users")
_CLIENTS = {"urls": "links", "default_key": "keys", "openapi": "document"}
_METHODS = {
    "index": "list", "add": "create", "read": "get", "urls.visits": "listVisits", "qr.visits": "listVisits",
    "overlay.answers": "listAnswers", "stats.read": "query", "webhooks.rotate": "rotateSecret",
    "webhooks.deliveries": "listDeliveries", "webhooks.events": "listEvents", "imports.errors": "listErrors",
    "users.login_link": "createLoginLink", "openapi.document": "get", "export.urls": "links",
}  # fmt: skip


def _scope(blueprint: str, view: str, method: str, rule: str) -> str:
    if (blueprint, view) == ("export", "account"):
        return ALL
    if blueprint in ("openapi", "docs"):
        return PUBLIC
    first = rule.split("/")[2]
    word = _WORDS.get(blueprint, blueprint) or _WORDS_OF_PATHS.get(first, first)
    if word == ADMIN:
        return ADMIN
    action = READ if method == "GET" else CREATE if view.startswith("add") else WRITE
    return f"{word}:{action}"


def _id(endpoint: str) -> str:
    if endpoint == "docs.page":
        return ""
    blueprint, view = endpoint.split(".")
    first, *others = view.split("_")
    name = _METHODS.get(endpoint) or _METHODS.get(view) or first + "".join(word.title() for word in others)
    return f"{_CLIENTS.get(blueprint, blueprint)}.{name}"


def declare(app: Flask) -> None:
    for rule in app.url_map.iter_rules():
        view: Any = app.view_functions[rule.endpoint]
        if not rule.rule.startswith("/api/") or hasattr(view, "operation"):
            continue
        blueprint, name = rule.endpoint.split(".")
        [method] = (rule.methods or set()) - {"HEAD", "OPTIONS"}
        is_known = blueprint in RESTRICTED_BLUEPRINTS and name in RESTRICTED_VIEWS
        limits = ("own_only", "domains") if method == "GET" or blueprint in ("urls", "keys") else ("own_only",)
        view.operation = Operation(
            _scope(blueprint, name, method, rule.rule),
            _id(rule.endpoint),
            row=TABLES.get(blueprint, "users" if blueprint in _OF_USERS else "") if method in ("PUT", "DELETE") else "",
            changes_callers=method != "GET" and blueprint in _WRITERS,
            restricted=limits if is_known else (),
            selections=("ids", "campaign", "channel", "domain") if rule.endpoint == "stats.read" else (),
            is_upload=rule.endpoint == "imports.add",
        )
