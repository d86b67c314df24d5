from datetime import UTC, datetime
from typing import Any, ClassVar

from marshmallow import ValidationError

from linkmgr.core import keys
from linkmgr.core.database import transaction
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import MAX_ID, Array, Boolean, Shown, Text, Timestamp, parse_network
from linkmgr.core.fields.bodies import Body
from linkmgr.core.fields.member import JsonSchema, member
from linkmgr.core.fields.resource import Resource, Stored, Words, row_id, updated
from linkmgr.core.web import scopes
from linkmgr.features.scoped_keys import repository as api_keys

MAX_ITEMS = 100  # of an array


class Items(Array):
    """An array of distinct values. `description` completes the sentence "must be an array of"."""

    default_error_messages = {
        "required": "is required",
        "invalid": "must be an array of at most {maximum} {description}",
        "empty": "must not be empty",
    }
    description: str
    item: ClassVar[Any]  # the schema of a value

    def __init__(self, *, least: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.least = least

    @property
    def json(self) -> JsonSchema:
        bounds = {"minItems": self.least} if self.least else {}
        return {"type": "array", "items": self.item, "maxItems": MAX_ITEMS, **bounds}

    def parse(self, value: Any) -> Any:
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
            quoted = value[:50] if isinstance(value, str) and value.isprintable() else "a value"
            raise ValidationError(f"must be from the list {', '.join(scopes.names())}; {quoted} is not")
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
        if not isinstance(value, str):
            raise ValueError
        return parse_network(value)


class KeyExpiry(Timestamp):
    """The end of a key. That of a new key is in the future."""

    def clean(self, text: str) -> str:
        time = super().clean(text)
        is_update = isinstance(self.parent, Body) and self.parent.is_update
        if not is_update and datetime.fromisoformat(time) <= datetime.now(UTC):
            raise ValidationError(
                "must be in the future. Send a later time, or none for a key that does not expire"
            )
        return time


class Key(Resource):
    id = row_id()
    name = member(Text(required=True), "The program that uses the key.", "Newsletter", label="Name")
    prefix = member(Shown({"type": "string"}), "The first characters of the key.", "lmk_Ab3d")
    scopes = member(
        Scopes(required=True, least=1), "What the key allows.", ["links:create", "stats:read"], label="Scopes"
    )
    domains = member(
        DomainIds(load_default=list),
        "The ids of the branded domains that the key is limited to. `[]` means no limit.",
        [17],
        label="Domains",
        default=[],
    )
    own_only = member(
        Boolean(load_default=False),
        "Limits the key to the links and QR codes that it creates. It cannot be changed later.",
        False,
        label="Only the links and QR codes that it creates",
        fixed=True,
    )
    expires = member(
        KeyExpiry(allow_empty=True, allow_none=True),
        "The key stops working at this time. A new key needs a time in the future. An update with "
        "a past time ends the key at once.",
        "2030-12-31 23:59:59",
        label="Expiry",
        removed="",
    )
    allowed_ips = member(
        Networks(load_default=list),
        "The IP addresses and networks that the key can be used from. `[]` means all. IPv4-mapped "
        "addresses such as `::ffff:192.0.2.7` become IPv4.",
        ["192.0.2.0/24", "2001:db8::/32"],
        label="IP addresses",
        default=[],
    )
    created = member(
        Timestamp(dump_only=True), "The time of the last rotation, if there was one.", "2026-11-21 09:30:00"
    )
    updated = updated()
    last_used = member(
        Timestamp(dump_only=True, allow_none=True), "The minute of the last use.", "2026-11-21 09:30:00"
    )
    last_address = member(
        Shown({"type": ["string", "null"]}), "The IP address of the first use in this minute.", "192.0.2.7"
    )
    made_by = member(
        Shown({"type": ["string", "null"]}),
        "The name of the user who made it. `null`: deleted since.",
        "erin",
    )
    previous_until = member(
        Timestamp(dump_only=True, allow_none=True),
        "The end of the overlap of the last rotation, while it lasts.",
        "2026-11-21 09:30:00",
    )


def create_key(user_id: int, members: Row) -> Row:
    """Store a key and return its row, with the `key`, which is not shown again."""
    secret = keys.new_scoped_key()
    with transaction.in_transaction():
        added = api_keys.add(user_id, members | {"secret": secret})
        return api_keys.read(user_id, added["id"]) | {"key": secret}


def rotate_secret(user_id: int, key_id: int, *, overlap: int, version: str | None = None) -> Row:
    """Replace a key, unless `version` is not that of its row. Return its row with the new `key`."""
    secret = keys.new_scoped_key()
    return {"key": secret} | api_keys.rotate(user_id, key_id, secret=secret, overlap=overlap, version=version)


KEYS = Stored(
    Key,
    Words("API key", path="key", plural="keys", table="api_keys"),
    rows=api_keys,
    create=create_key,
    change=api_keys.update,
)
