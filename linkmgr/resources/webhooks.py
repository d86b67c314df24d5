"""/api/webhooks and /api/webhook"""

from urllib.parse import urlsplit

from marshmallow import ValidationError

from linkmgr.db.statements import Row
from linkmgr.fields.base import Boolean, Shown, Text, Url
from linkmgr.fields.member import member
from linkmgr.fields.urls import MAX_URL
from linkmgr.fields.webhooks import Events, Filter
from linkmgr.outbound.webhooks import is_refused, new_secret
from linkmgr.repository import webhooks
from linkmgr.repository.outbox import DAYS_KEPT, DELIVERY_BYTES, MAX_BYTES, MAX_EVENTS
from linkmgr.resources.resource import Resource, created, row_id


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
    about = f"""\
A webhook receives a POST for every event of its `events`. A webhook without a `url` only records events, for programs
that read them with `GET /api/events`. Events are recorded while you have a webhook that subscribes to them, in the
transaction of the change itself: an event is sent if and only if the change was stored.

Deliveries follow the [Standard Webhooks](https://www.standardwebhooks.com) specification. The body is
`{{"type": ..., "timestamp": ..., "data": ...}}` with at most 20 kB. If it would be larger, `data` has the member
`truncated` and lacks its largest members. The headers are `webhook-id`, `webhook-timestamp` and `webhook-signature`. To
verify a delivery, use a library of the specification with the `secret` of the webhook.

- Respond with a status of 2xx within 15 seconds. Redirects are not followed. The URL needs a public IP address and the
  port 80 or 443; the setting `LINKMGR_PRIVATE_NETWORKS` allows further networks. An IP address or `localhost` that this
  excludes is refused as `url`. Other host names are resolved when an event is sent.
- A delivery that fails is sent again after 5 seconds, 5 minutes, 30 minutes, and 2, 5, 10, 14, 20 and 24 hours. While a
  receiver fails, it gets one delivery at a time, at most a minute apart. A 410, or a week without success, turns the
  webhook off, and `reason` says why. The week starts again after two days without an attempt. Waiting deliveries of a
  webhook that was turned off are `off`. Set `active` to turn it on again and send them.
- An event is delivered at least once, so compare `webhook-id` if repetitions matter. Deliveries arrive in any order.
- `link`, `qr` and the other records are read within about a second of the change. The `data` of a `deleted` event has
  the main members of the deleted row, that of `link.deleted` also its `shorturl` and `domain`. A change that leaves a
  record as it was is no event, and several changes within a second can be one.
- `link.expired` is sent once, within about a minute of the expiry, or of a change that sets `expiry` to a past time.
- The data of `visit` and `scan` is up to 40 visits: `{{"visits": [{{"id", "shorturl", "time", "country", ...}}]}}`. It
  has no IP addresses, no visits of bots, and no visits that are more than a day old when they are stored. Newer visits
  that an import adds are sent too.
- `campaign`, `channel` and `domain` limit the events to those of the links, QR codes and visits that belong to them. A
  deleted link or QR code belongs to no channel.
- `plan.limit_reached` is sent when the last row that your plan allows is added. `user.created` and `user.deleted` are
  sent to administrators only. Other users cannot subscribe to them or to `user.*`, and get all other events with `*`.

Users take turns: a receiver that is slow delays only the deliveries of its owner, who has at most 8 under way in a
process of the service. Events and deliveries are kept for {DAYS_KEPT} days. Of each user they are at most
{MAX_EVENTS:,} events and {MAX_BYTES >> 20} MiB; a delivery counts as {DELIVERY_BYTES:,} bytes. Beyond that, the oldest
are dropped, delivered or not. There is no stream of events: call `GET /api/events` with the last `next`."""
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
