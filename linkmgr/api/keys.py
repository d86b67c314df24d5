"""/api/keys and /api/key"""

import ipaddress
from datetime import UTC, datetime
from typing import Any, ClassVar

from flask import Blueprint, Response
from marshmallow import ValidationError, fields

from linkmgr import keys
from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.fields.base import MAX_ID, Boolean, Changes, Integer, New, Text, Timestamp, body, changes_of
from linkmgr.fields.member import JsonSchema
from linkmgr.fields.query import paging
from linkmgr.repository import api_keys
from linkmgr.web import scopes
from linkmgr.web.auth import caller, user_id
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("keys", __name__)
default_bp = Blueprint("default_key", __name__)  # its updates change the row of the user

MAX_ITEMS = 100  # of an array
MAX_OVERLAP = 7 * 86400  # seconds
_MAPPED_BITS = 96  # in front of the IPv4 address of an IPv4-mapped one


class Items(fields.Field[list[Any]]):
    """An array of distinct values. `description` completes the sentence "must be an array of"."""

    default_error_messages = {
        "required": "is required",
        "invalid": "must be an array of at most {maximum} {description}",
        "empty": "must not be empty",
    }
    description = ""

    @property
    def item(self) -> JsonSchema:
        """The schema of a value."""
        raise NotImplementedError

    def __init__(self, *, least: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.least = least

    @property
    def json(self) -> JsonSchema:
        bounds = {"minItems": self.least} if self.least else {}
        return {"type": "array", "items": self.item, "maxItems": MAX_ITEMS, **bounds}

    def parse(self, value: Any) -> Any:
        """Return the value in canonical form, or raise ValueError."""
        raise NotImplementedError

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        try:
            if not isinstance(value, list) or len(value) > MAX_ITEMS:
                raise ValueError
            items = list(dict.fromkeys(map(self.parse, value)))
        except ValueError:
            raise self.make_error("invalid", maximum=MAX_ITEMS, description=self.description) from None
        if len(items) < self.least:
            raise self.make_error("empty")
        return items


class Scopes(Items):
    description = "scopes"

    @property
    def item(self) -> JsonSchema:
        return {"type": "string", "enum": scopes.names()}

    def parse(self, value: Any) -> str:
        if value not in scopes.names():
            shown = value[:50] if isinstance(value, str) and value.isprintable() else "a value"
            raise ValidationError(f"must be from the list {', '.join(scopes.names())}; {shown} is not")
        return str(value)


class DomainIds(Items):
    description = "ids of your branded domains"
    item: ClassVar[JsonSchema] = {"type": "integer", "minimum": 1, "maximum": MAX_ID}

    def parse(self, value: Any) -> int:
        if type(value) is not int or not 0 < value <= MAX_ID:
            raise ValueError
        return value


class Networks(Items):
    description = "IP addresses or networks such as 192.0.2.7 or 2001:db8::/32"
    item: ClassVar[JsonSchema] = {"type": "string", "pattern": "^[0-9A-Fa-f.:/]+$"}

    def parse(self, value: Any) -> str:
        if not isinstance(value, str) or "%" in value:  # PostgreSQL has no zones such as fe80::1%eth0
            raise ValueError
        network = ipaddress.ip_network(value, strict=False)
        # Clients never have an IPv4-mapped address (client_address.py). Larger networks do not begin with one.
        mapped = getattr(network.network_address, "ipv4_mapped", None)
        return f"{mapped}/{network.prefixlen - _MAPPED_BITS}" if mapped else str(network)


class FutureTime(Timestamp):
    def clean(self, text: str) -> str:
        time = super().clean(text)
        if datetime.fromisoformat(time) <= datetime.now(UTC):
            raise ValidationError("must be in the future. Send a later time, or none for a key that does not expire")
        return time


class KeyCreate(New):
    name = Text(required=True)
    scopes = Scopes(required=True, least=1)
    domains = DomainIds()
    own_only = Boolean()
    expires = FutureTime()
    allowed_ips = Networks()


class KeyUpdate(Changes):
    name = Text()
    scopes = Scopes(least=1)
    domains = DomainIds()
    expires = Timestamp(allow_empty=True)
    allowed_ips = Networks()


class KeyRotation(New):
    overlap = Integer(0, MAX_OVERLAP, load_default=0)


class DefaultKeyUpdate(Changes):
    active = Boolean(required=True)


def _grantable() -> Row:
    return scopes.grantable(caller(), is_admin=bool(caller().admin))


@bp.get("/keys")
def index() -> Json:
    answer = listing("keys", api_keys.index(user_id(), **paging()))
    key = caller().key
    if key is None or not key.is_restricted:  # a restricted key sees only keys with its limits
        answer["default"] = api_keys.default(user_id())
    return answer


@bp.get("/key/<id:key_id>")
def read(key_id: int) -> Response:
    key = api_keys.read(user_id(), key_id)
    return versioned(key.pop("version"), data=key)


@bp.post("/key/add")
def add() -> Json:
    new, secret = body(KeyCreate), keys.new_scoped_key()
    return ok(id=api_keys.add(user_id(), _grantable(), secret=secret, **new), key=secret)


@bp.put("/key/<id:key_id>/update")
def update(key_id: int) -> Response:
    changes = changes_of(KeyUpdate, lambda: api_keys.read(user_id(), key_id))
    api_keys.update(user_id(), key_id, _grantable(), **changes)
    key = api_keys.read(user_id(), key_id)
    return updated("API key has been updated successfully.", key.pop("version"), data=key)


@default_bp.put("/key/default/update")
def update_default() -> Json:
    if not scopes.is_unlimited(caller()):
        raise AppError("key_exceeded")
    active = body(DefaultKeyUpdate)["active"]
    api_keys.set_default(user_id(), active=active)
    return ok(f"The default key has been turned {'on' if active else 'off'}.")


@bp.post("/key/<id:key_id>/rotate")
def rotate(key_id: int) -> Json:
    rotation, secret = body(KeyRotation), keys.new_scoped_key()
    rotated = api_keys.rotate(user_id(), key_id, _grantable(), secret=secret, **rotation)
    return ok("API key has been rotated successfully.", id=key_id, key=secret, **rotated)


@bp.delete("/key/<id:key_id>/delete")
def delete(key_id: int) -> Json:
    api_keys.delete(user_id(), key_id, _grantable())
    return ok("API key has been deleted successfully.")
