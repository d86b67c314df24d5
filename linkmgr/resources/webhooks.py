"""/api/webhooks and /api/webhook"""

from urllib.parse import urlsplit

from marshmallow import ValidationError

from linkmgr.db.statements import Row
from linkmgr.fields.base import Boolean, Shown, Text, Url
from linkmgr.fields.member import member
from linkmgr.fields.urls import MAX_URL
from linkmgr.fields.webhooks import Events, Filter
from linkmgr.outbound.webhooks import is_refused, new_secret
from linkmgr.repository import outbox, webhooks
from linkmgr.resources.resource import Resource, created, prose, row_id


class ReceiverUrl(Url):
    def clean(self, text: str) -> str:
        url = super().clean(text)
        parts = urlsplit(url)
        if is_refused(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)):
            raise ValidationError(
                "must not contain an IP address or port that webhooks do not call. Use a public IP address and port 80 "
                "or 443, or ask an administrator to add the network to LINKMGR_PRIVATE_NETWORKS"
            )
        return url


class Webhook(Resource):
    about = prose(__file__, outbox=outbox, mebibytes=outbox.MAX_BYTES >> 20)
    noun = path = "webhook"
    plural = path_of_add = "webhooks"
    answered = ("id", "secret")
    rows = webhooks

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
    campaign = member(Filter(), "Only events of this campaign and its links. 0 means all.", 17, label="Campaign")
    channel = member(Filter(), "Only events of this channel and its items. 0 means all.", 17, label="Channel")
    domain = member(Filter(), "Only events of this branded domain and its links. 0 means all.", 17, label="Domain")
    active = member(
        Boolean(load_default=True),
        "`false` turns the webhook off; `true` turns it on without failures.",
        True,
        label="Active",
    )
    reason = member(Shown({"type": "string"}), "Why the service turned the webhook off.", "")
    date = created()

    @classmethod
    def create(cls, user_id: int, members: Row) -> Row:
        """Add a webhook, and return its secret too, which is not shown again."""
        secret = new_secret()
        return super().create(user_id, members | {"secret": secret}) | {"secret": secret}
