"""The members of webhooks: types of events, the patterns by which webhooks subscribe to them, and filters."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from marshmallow import ValidationError

from linkmgr.fields.base import MAX_ID, Array, Integer
from linkmgr.fields.member import JsonSchema

KINDS = ("link", "qr", "campaign", "channel", "bio", "domain", "splash", "overlay", "pixel")
TEST = "webhook.test"  # delivered to the tested webhook only
TYPES = (
    *(f"{kind}.{change}" for kind in KINDS for change in ("created", "updated", "deleted")),
    "link.expired",
    "visit",
    "scan",
    "answer.received",
    "import.finished",
    "plan.limit_reached",
    "user.created",
    "user.deleted",
)
PATTERNS = ("*", *sorted({f"{name.partition('.')[0]}.*" for name in TYPES if "." in name}), *TYPES)


OF_USERS = "user."  # the beginning of the types for administrators


def matches(patterns: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def match_users(patterns: Iterable[str]) -> bool:
    """Return True if the patterns include events of users."""
    return any(matches(patterns, name) for name in TYPES if name.startswith(OF_USERS))


def users_problem(patterns: Iterable[str]) -> str | None:
    """Return the problem of patterns that match only events of users, for those who do not receive them."""
    refused = next((name for name in patterns if name.startswith(OF_USERS)), None)
    return refused and f"must not contain {refused!r}, which only administrators receive. Remove it"


class Events(Array):
    default_error_messages = {
        "required": "is required",
        "invalid": "must be a non-empty array of event types such as ['link.created', 'visit'], or prefixes such as"
        " ['link.*'] and ['*']",
    }
    json: ClassVar[JsonSchema] = {"type": "array", "items": {"type": "string", "enum": list(PATTERNS)}, "minItems": 1}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str]:
        if not isinstance(value, list) or not value:
            raise self.make_error("invalid")
        for name in value:
            if name not in PATTERNS:
                raise ValidationError(f"must not contain {str(name)[:60]!r}. Possible values: {', '.join(PATTERNS)}")
        return list(dict.fromkeys(value))


class Filter(Integer):
    """The id of a row whose events pass. 0 means all."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(0, MAX_ID, load_default=0, allow_none=True, **kwargs)
