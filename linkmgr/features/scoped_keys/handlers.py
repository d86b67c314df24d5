from flask import Blueprint, Response

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import shapes
from linkmgr.core.fields.base import Boolean
from linkmgr.core.fields.bodies import Body
from linkmgr.core.fields.member import JsonSchema, member
from linkmgr.core.fields.query import NAMED_PAGING, named_paging
from linkmgr.core.fields.rotation import Rotation
from linkmgr.core.web import scopes
from linkmgr.core.web.auth import caller, user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, changed, created, listing, ok, reading, record, updated
from linkmgr.features.scoped_keys import repository as api_keys
from linkmgr.features.scoped_keys.schema import Key, create_key, rotate_secret

bp = Blueprint("keys", __name__, url_prefix="/api")

_MADE = shapes.created_schema(Key, key=shapes.text("lmk_...", pattern="^lmk_"))
_MADE["properties"] |= {name: shapes.member(Key, name) for name in ("prefix", "previous_until")}
_DEFAULT = shapes.object_of(
    name="default",
    prefix="linkmgr_",
    active=True,
    created=shapes.TIMESTAMP,
    expires=shapes.or_null(shapes.TIMESTAMP),
)


def _records() -> dict[str, JsonSchema]:
    return shapes.records_of(Key) | {"DefaultKey": _DEFAULT}


SECTION = Section("keys", "Keys", prose(__file__, pattern=keys.SCOPED_PATTERN), _records)


class DefaultKeyUpdate(Body):
    is_update = True
    active = member(Boolean(required=True), "`false` turns the default key off.", True)


@bp.get("/keys")
@operation(
    "keys:read",
    "keys.list",
    shapes.listing_schema("keys", Key, default=shapes.ref("DefaultKey")) | {"required": ["error", "data"]},
    query=NAMED_PAGING,
)
def index() -> Json:
    """List API keys."""
    return listing("keys", api_keys.index(user_id(), **named_paging()), Key) | {
        "default": api_keys.default(user_id())
    }


@bp.get("/key/<id:key_id>")
@operation("keys:read", "keys.get", shapes.reading_schema(Key), has_etag=True)
def read(key_id: int) -> Response:
    """Read an API key."""
    return reading(Key, api_keys.read(user_id(), key_id))


@bp.post("/key/add")
@operation(
    "keys:create",
    "keys.create",
    shapes.with_message("", _MADE, "prefix", "previous_until"),
    body=Key.creates(),
    example={
        "name": "Newsletter",
        "scopes": ["links:create", "stats:read"],
        "expires": "2030-12-31 23:59:59",
    },
    errors=("keys_full", "key_exceeded", "admin_scope", "domains_unknown"),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Add an API key."""
    return created(Key, create_key(user_id(), new), "key")


@bp.put("/key/<id:key_id>/update")
@operation(
    "keys:write",
    "keys.update",
    shapes.changed_schema("API key has been updated successfully.", Key),
    body=Key.updates(),
    stored=api_keys.read,
    example={"scopes": ["links:create"]},
    errors=("key_exceeded", "admin_scope", "domains_unknown"),
    row="api_keys",
    has_etag=True,
)
def update(changes: Row, key_id: int) -> Response:
    """Change an API key."""
    return changed("API key has been updated successfully.", Key, api_keys.update(user_id(), key_id, changes))


@bp.delete("/key/<id:key_id>/delete")
@operation(
    "keys:write",
    "keys.delete",
    shapes.done("API key has been deleted successfully."),
    errors=("key_exceeded",),
    row="api_keys",
)
def delete(key_id: int) -> Json:
    """Delete an API key."""
    api_keys.delete(user_id(), key_id)
    return ok("API key has been deleted successfully.")


@bp.put("/key/default/update")
@operation(
    "keys:write",
    "keys.updateDefault",
    shapes.done("The default key has been turned on."),
    body=DefaultKeyUpdate,
    errors=("key_exceeded", "default_key_only"),
    row="users",
)
def update_default(changes: Row) -> Json:
    """Turn the default key on or off.

    It can be turned off while there is another valid key. This needs a key without limits. It can
    always be turned on again on the page of API keys in the console, or by its replacement on the
    account page.
    """
    if not scopes.is_unlimited(caller()):
        raise AppError("key_exceeded")
    active = changes["active"]
    api_keys.set_default(user_id(), active=active)
    return ok(f"The default key has been turned {'on' if active else 'off'}.")


@bp.post("/key/<id:key_id>/rotate")
@operation(
    "keys:write",
    "keys.rotate",
    shapes.with_message("API key has been rotated successfully.", _MADE),
    body=Rotation,
    errors=("key_exceeded",),
    has_etag=True,
)
def rotate(rotation: Row, key_id: int) -> Response:
    """Replace an API key.

    The previous key works for `overlap` more seconds, by default 0. A key that an earlier rotation
    replaced stops working at once.
    """
    row = rotate_secret(user_id(), key_id, overlap=rotation["overlap"] or 0)
    beside = {name: row[name] for name in ("id", "key", "prefix", "previous_until")}
    message = "API key has been rotated successfully."
    return updated(message, row["version"], beside, data=record(Key, row))
