"""Field types. A validation message completes a sentence that begins with the name of the
member."""

import ipaddress
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

from marshmallow import ValidationError, fields, validate

from linkmgr.core.database.statements import MAX_BIGINT
from linkmgr.core.fields.member import JsonSchema, url_json
from linkmgr.core.fields.urls import normalize_target, split_ascii
from linkmgr.core.web import request as web_request

MAX_ID = MAX_BIGINT
_MAPPED_BITS = 96  # in front of the IPv4 address of an IPv4-mapped one
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# In JSON Schema, the characters that a text on one line and a multiline text must not contain.
# Written with \x, which every language reads, unlike \u.
_NOT_IN_LINE, _NOT_IN_LINES = "\\x00-\\x1f\\x7f", "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f"
_TIME = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]) (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"


def parse_network(text: str) -> str:
    """Return an IP address or network in the form of PostgreSQL, or raise ValueError."""
    if "%" in text:  # PostgreSQL has no zones such as fe80::1%eth0
        raise ValueError
    network = ipaddress.ip_network(text, strict=False)
    # Clients never have an IPv4-mapped address (request/request.py). Larger networks do not begin
    # with one.
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    return f"{mapped}/{network.prefixlen - _MAPPED_BITS}" if mapped else str(network)


class Text(fields.String):
    """Text that is not blank, on one line unless `multiline`. With `allow_empty`, "" clears it."""

    default_error_messages = {"required": "is required", "invalid": "must be a string"}

    def __init__(
        self, max_length: int = 255, *, allow_empty: bool = False, multiline: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.max_length, self.allow_empty, self.multiline = max_length, allow_empty, multiline

    @property
    def json(self) -> JsonSchema:
        excluded = _NOT_IN_LINES if self.multiline else _NOT_IN_LINE
        pattern = f"^[^{excluded}]*[^\\s{excluded}][^{excluded}]*$"
        return {"type": "string", "maxLength": self.max_length, "pattern": pattern}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        if text == "" and self.allow_empty:
            return text
        return self.clean(text)

    def clean(self, text: str) -> str:
        if not text.strip():
            raise ValidationError("must not be empty")
        if len(text) > self.max_length:
            raise ValidationError(f"must be at most {self.max_length} characters")
        if _CONTROL.search(
            text.replace("\n", "").replace("\r", "").replace("\t", "") if self.multiline else text
        ):
            raise ValidationError("must not contain control characters")
        return text


class Matching(Text):
    """Text that matches a pattern. `description` completes the sentence "must be"."""

    def __init__(self, pattern: str, description: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pattern, self.description = re.compile(pattern, re.ASCII), description

    @property
    def json(self) -> JsonSchema:
        about = f"{self.description[0].upper()}{self.description[1:]}."
        return {"type": "string", "pattern": f"^(?:{self.pattern.pattern})$", "description": about}

    def clean(self, text: str) -> str:
        if not self.pattern.fullmatch(text):
            raise ValidationError(f"must be {self.description}")
        return text


class Choice(Text):
    def __init__(self, choices: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.choices = choices

    @property
    def json(self) -> JsonSchema:
        return {"type": "string", "enum": list(self.choices)}

    def clean(self, text: str) -> str:
        if text not in self.choices:
            raise ValidationError(f"must be one of {', '.join(self.choices)}")
        return text


class Color(Matching):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__("#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})", "a color such as #f50 or #ff5500", **kwargs)


class Email(Text):
    @property
    def json(self) -> JsonSchema:
        return {"type": "string", "format": "email", "maxLength": self.max_length}

    def clean(self, text: str) -> str:
        return str(validate.Email(error="must be a valid e-mail address")(super().clean(text)))


class Password(Text):
    """Any characters, blank ones too. The specification sets the length (section 8)."""

    def __init__(self, minimum: int = 5, **kwargs: Any) -> None:
        super().__init__(1024, **kwargs)
        self.minimum = minimum

    @property
    def json(self) -> JsonSchema:
        return {
            "type": "string",
            "format": "password",
            "minLength": self.minimum,
            "maxLength": self.max_length,
        }

    def clean(self, text: str) -> str:
        if not self.minimum <= len(text) <= self.max_length:
            raise ValidationError(f"must be {self.minimum} to {self.max_length} characters")
        return text


class Timestamp(Text):
    """A time in UTC as YYYY-MM-DD HH:MM:SS."""

    json: ClassVar[JsonSchema] = {"type": "string", "pattern": f"^{_TIME}$", "description": "UTC."}

    def clean(self, text: str) -> str:
        # strptime also accepts "2030-1-1 1:2:3" and non-ASCII digits, so compare with its own
        # output.
        with suppress(ValueError):
            if datetime.strptime(text, "%Y-%m-%d %H:%M:%S").isoformat(" ") == text:
                return text + "+00"
        raise ValidationError("must be a time such as 2030-12-31 23:59:59")


class Expiration(Timestamp):
    """The end of a plan. One in the past is accepted with a warning."""

    def clean(self, text: str) -> str:
        time = super().clean(text)
        if datetime.fromisoformat(time) <= datetime.now(UTC):
            web_request.warn("expiration is in the past, so the user has the free plan.")
        return time


class Shown(fields.Raw):
    """A member that is only shown, with its JSON Schema."""

    def __init__(self, json: JsonSchema) -> None:
        super().__init__(dump_only=True)
        self.json = json


class IpAddress(Text):
    """An address of a visitor, as requests have it."""

    json: ClassVar[JsonSchema] = {"type": "string", "pattern": "^[0-9A-Fa-f.:]+$"}

    def clean(self, text: str) -> str:
        with suppress(ValueError):
            ip = ipaddress.ip_address(text.partition("%")[0])
            return str(getattr(ip, "ipv4_mapped", None) or ip)
        raise ValidationError("must be an IP address such as 192.0.2.7 or 2001:db8::7")


class Boolean(fields.Field[bool]):
    default_error_messages = {"required": "is required", "invalid": "must be true or false"}
    json: ClassVar[JsonSchema] = {"type": "boolean"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid")
        return value


class Array(fields.Field[list[Any]]):
    """An array of distinct values."""


class Integer(fields.Integer):
    default_error_messages = {"required": "is required", "null": "must not be null"}

    def __init__(self, minimum: int, maximum: int, **kwargs: Any) -> None:
        problem = f"must be an integer from {minimum} to {maximum}"
        in_range = validate.Range(minimum, maximum, error=problem)
        super().__init__(strict=True, validate=in_range, error_messages={"invalid": problem}, **kwargs)
        self.minimum, self.maximum = minimum, maximum
        self.json: JsonSchema = {"type": "integer", "minimum": minimum, "maximum": maximum}


class Id(fields.Integer):
    """An id in a body. An id that no row can have becomes 0, so that it is not found."""

    default_error_messages = {"required": "is required", "invalid": "must be an integer"}
    json: ClassVar[JsonSchema] = {"type": "integer", "minimum": 1, "maximum": MAX_ID}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(strict=True, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        row_id = super()._deserialize(value, attr, data, **kwargs)
        return row_id if 0 < row_id <= MAX_ID else 0


class Url(Text):
    """An absolute http or https URL, in ASCII, which may be on this service."""

    json: ClassVar[JsonSchema] = url_json("An absolute http or https URL.")

    def clean(self, text: str) -> str:
        return split_ascii(text).geturl()


class Target(Text):
    """The target of a redirect: an absolute http or https URL, in ASCII, that is not on this
    service."""

    json: ClassVar[JsonSchema] = url_json("An http or https URL, not on this service.")

    def clean(self, text: str) -> str:
        return normalize_target(text)
