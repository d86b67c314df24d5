"""/api/keys and /api/key"""

from flask import Blueprint

from linkmgr.api import usual
from linkmgr.errors import AppError
from linkmgr.fields.base import Boolean
from linkmgr.fields.bodies import New, body
from linkmgr.fields.member import member
from linkmgr.repository import api_keys
from linkmgr.request import scopes
from linkmgr.resources.keys import Key, KeyRotation
from linkmgr.web.auth import caller, user_id
from linkmgr.web.responses import Json, ok

bp = Blueprint("keys", __name__)
default_bp = Blueprint("default_key", __name__)  # its updates change the row of the user
usual.add_routes(bp, Key, "read", "add", "update", "delete")


class DefaultKeyUpdate(New):
    unsent = (None,)
    active = member(Boolean(required=True), "`false` turns the default key off.", True)


@bp.get("/keys")
def index() -> Json:
    response = usual.index(Key)
    key = caller().key
    if key is None or not key.is_restricted:  # a restricted key sees only keys with its limits
        response["default"] = api_keys.default(user_id())
    return response


@default_bp.put("/key/default/update")
def update_default() -> Json:
    if not scopes.is_unlimited(caller()):
        raise AppError("key_exceeded")
    active = body(DefaultKeyUpdate)["active"]
    api_keys.set_default(user_id(), active=active)
    return ok(f"The default key has been turned {'on' if active else 'off'}.")


@bp.post("/key/<id:key_id>/rotate")
def rotate(key_id: int) -> Json:
    rotated = Key.rotate(user_id(), key_id, **body(KeyRotation))
    return ok("API key has been rotated successfully.", id=key_id, **rotated)
