from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, ClassVar
from urllib.parse import urlsplit

from marshmallow import ValidationError

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import MAX_ID, Array, Boolean, Integer, Shown, Text, Url
from linkmgr.core.fields.member import JsonSchema, member
from linkmgr.core.fields.resource import Resource, Stored, Words, created, row_id, updated
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.core.web import request as web_request
from linkmgr.features.utm.schema import UTM_TEMPLATES
from linkmgr.features.webhooks import repository as webhooks
from linkmgr.features.webhooks.sender import is_refused, new_secret
from linkmgr.schemas.stored import STORED

CARRIED = (*STORED, UTM_TEMPLATES)  # by events
SUBJECTS = ("link", "qr", *(stored.words.path for stored in CARRIED))
TEST = "webhook.test"  # delivered to the tested webhook only
TYPES = (
    *(f"{subject}.{change}" for subject in SUBJECTS for change in ("created", "updated", "deleted")),
    *(f"link.{change}" for change in ("expired", "blocked", "broken", "recovered")),
    "public.updated",
    "conversion.created",
    "conversion.changed",
    "conversion.deleted",
    "visit",
    "scan",
    "answer.received",
    "import.finished",
    "plan.limit_reached",
    "report.created",
    "user.created",
    "user.deleted",
    *(f"audit.{subject}" for subject in ("sign_in", "key", "member", "user", "plan", "factor", "secret")),
)
PATTERNS = ("*", *sorted({f"{name.partition('.')[0]}.*" for name in TYPES if "." in name}), *TYPES)


OF_USERS = ("user.", "audit.", "report.")  # the beginnings of the types for administrators


def matches(patterns: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def match_users(patterns: Iterable[str]) -> bool:
    return any(pattern == "*" or pattern.startswith(OF_USERS) for pattern in patterns)


def users_problem(patterns: Iterable[str]) -> str | None:
    refused = next((name for name in patterns if name.startswith(OF_USERS)), None)
    return refused and f"must not contain {refused!r}, which only administrators receive. Remove it"


class Events(Array):
    default_error_messages = {
        "required": "is required",
        "invalid": "must be a non-empty array of event types such as ['link.created', 'visit'], or "
        "prefixes such as ['link.*'] and ['*']",
    }
    json: ClassVar[JsonSchema] = {
        "type": "array",
        "items": {"type": "string", "enum": list(PATTERNS)},
        "minItems": 1,
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str]:
        if not isinstance(value, list) or not value:
            raise self.make_error("invalid")
        for name in value:
            if name not in PATTERNS:
                raise ValidationError(
                    f"must not contain {str(name)[:60]!r}. Possible values: {', '.join(PATTERNS)}"
                )
        return list(dict.fromkeys(value))


class Filter(Integer):
    """The id of a row whose events pass. 0 means all."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(0, MAX_ID, load_default=0, allow_none=True, **kwargs)


class ReceiverUrl(Url):
    def clean(self, text: str) -> str:
        url = super().clean(text)
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if is_refused(parts.hostname or "", port, is_admin=web_request.is_admin()):
            raise ValidationError(
                "must not contain an IP address or port that webhooks do not call. Use a public IP "
                "address and port 80 or 443, or ask an administrator to add the network to "
                "LINKMGR_PRIVATE_NETWORKS"
            )
        return url


class Webhook(Resource):
    id = row_id()
    name = member(Text(required=True), "Its name in lists.", "Shop", label="Name")
    url = member(
        ReceiverUrl(MAX_URL, allow_empty=True),
        "The receiver of the events. Without a URL, events are only recorded, for programs that read them.",
        "https://example.com/hooks",
        label="URL",
    )
    events = member(
        Events(required=True),
        "Types of events, or prefixes such as `link.*` and `*`.",
        ["link.created", "visit"],
        label="Events",
    )
    campaign = member(
        Filter(), "Only events of this campaign and its links. 0 means all.", 17, label="Campaign", removed=0
    )
    channel = member(
        Filter(), "Only events of this channel and its items. 0 means all.", 17, label="Channel", removed=0
    )
    domain = member(
        Filter(),
        "Only events of this branded domain and its links. 0 means all.",
        17,
        label="Domain",
        removed=0,
    )
    active = member(
        Boolean(load_default=True),
        "`false` turns the webhook off; `true` turns it on without failures.",
        True,
        label="Active",
    )
    reason = member(Shown({"type": "string"}), "Why the service turned the webhook off.", "")
    date = created()
    updated = updated()


def create_webhook(user_id: int, members: Row) -> Row:
    """Store a webhook and return its row, with the `secret`, which is not shown again."""
    secret = new_secret()
    return webhooks.add(user_id, members | {"secret": secret}) | {"secret": secret}


WEBHOOKS = Stored(
    Webhook,
    Words("webhook", path="webhook", plural="webhooks", table="webhooks"),
    rows=webhooks,
    create=create_webhook,
    change=webhooks.update,
)
