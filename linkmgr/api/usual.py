"""The operations that most resources have: list, read, add, update and delete."""

from functools import partial
from typing import Any

from flask import Blueprint, Response

from linkmgr.fields.bodies import body, changes_of
from linkmgr.fields.query import paging
from linkmgr.resources.resource import Resource
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, changed, created, listing, ok, shown

Kind = type[Resource]


def index(kind: Kind) -> Json:
    return listing(kind.list_key or kind.plural, kind.index(user_id(), **paging()))


def _read(kind: Kind, **ids: int) -> Response:
    return shown(kind, kind.show(user_id(), *ids.values()))


def _add(kind: Kind) -> Response:
    return add(kind, body(kind.creates()))


def add(kind: Kind, members: Json) -> Response:
    return created(kind, kind.create(user_id(), members))


def _update(kind: Kind, **ids: int) -> Response:
    [row_id] = ids.values()
    return change(kind, row_id, changes(kind, row_id))


def changes(kind: Kind, row_id: int) -> Json:
    """Return the members of the body of an update."""
    return changes_of(kind.updates(), lambda: kind.read(user_id(), row_id))


def change(kind: Kind, row_id: int, members: Json) -> Response:
    return changed(kind, kind.change(user_id(), row_id, members))


def _delete(kind: Kind, **ids: int) -> Json:
    kind.delete(user_id(), *ids.values())
    return ok(f"{kind.subject()} has been deleted successfully.")


_ROUTES: dict[str, tuple[str, str, Any]] = {
    "index": ("GET", "/{plural}", index),
    "read": ("GET", "/{path}/<id:{id_name}>", _read),
    "add": ("POST", "/{adds}", _add),
    "update": ("PUT", "/{path}/<id:{id_name}>/update", _update),
    "delete": ("DELETE", "/{path}/<id:{id_name}>/delete", _delete),
}


def add_routes(bp: Blueprint, kind: Kind, *verbs: str) -> None:
    """Add the routes of a resource: all five, or only these."""
    for verb in verbs or _ROUTES:
        method, rule, view = _ROUTES[verb]
        rule = rule.format(plural=kind.plural, path=kind.path, adds=kind.adds(), id_name=kind.id_name())
        bp.add_url_rule(rule, verb, partial(view, kind), methods=[method])


def blueprint(kind: Kind) -> Blueprint:
    """Return the blueprint of a resource that has no other operations."""
    bp = Blueprint(kind.plural, __name__)
    add_routes(bp, kind)
    return bp
