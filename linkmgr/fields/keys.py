"""The members of API keys."""

import ipaddress
from datetime import UTC, datetime
from typing import Any, ClassVar

from marshmallow import ValidationError

from linkmgr.fields.base import MAX_ID, Array, Timestamp
from linkmgr.fields.member import JsonSchema
from linkmgr.web import scopes

MAX_ITEMS = 100  # of an array
_MAPPED_BITS = 96  # in front of the IPv4 address of an IPv4-mapped one


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
    json_shown: ClassVar[JsonSchema] = {"type": "array", "items": {"type": "string"}}  # later versions add some

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
        # Clients never have an IPv4-mapped address (web/request.py). Larger networks do not begin with one.
        mapped = getattr(network.network_address, "ipv4_mapped", None)
        return f"{mapped}/{network.prefixlen - _MAPPED_BITS}" if mapped else str(network)


class KeyExpiry(Timestamp):
    """The end of a key. That of a new key is in the future."""

    def clean(self, text: str) -> str:
        time = super().clean(text)
        if getattr(self.parent, "sent_on", "") == "create" and datetime.fromisoformat(time) <= datetime.now(UTC):
            raise ValidationError("must be in the future. Send a later time, or none for a key that does not expire")
        return time
