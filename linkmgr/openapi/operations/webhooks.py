"""/api/webhooks, /api/webhook, /api/delivery and /api/events"""

from linkmgr.api import webhooks
from linkmgr.fields.base import MAX_ID
from linkmgr.fields.webhooks import PATTERNS, TYPES
from linkmgr.openapi.model import PAGING, Member, Operation, Resource, parameter
from linkmgr.openapi.schemas import (
    ID,
    TIMESTAMP,
    JsonSchema,
    array_of,
    changed,
    choice,
    done,
    flag,
    listing,
    number,
    or_null,
    reading,
    record,
    success,
    text,
    url_or_empty,
)
from linkmgr.repository.outbox import DAYS_KEPT, DELIVERY_BYTES, MAX_BYTES, MAX_EVENTS

_TIME = text("2026-11-21T09:30:00Z", pattern="^[0-9-]{10}T[0-9:]{8}Z$")
_MESSAGE = text("msg_17", pattern="^msg_[0-9]+$")
_TYPE = text("link.created", **{"x-known-values": [*TYPES, "webhook.test"]})
_SECRET = text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=", pattern="^whsec_[A-Za-z0-9+/=]{44}$")
_DATA: JsonSchema = {
    "type": "object",
    "description": "The record as its GET shows it.",
    "examples": [{"id": 17, "shorturl": "https://go.example.org/summer"}],
}

RESOURCE = Resource(
    name="Webhooks and events",
    description=f"""\
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
are dropped, delivered or not. There is no stream of events: call `GET /api/events` with the last `next`.""",
    members={
        "name": Member("Shop", "Its name in lists."),
        "url": Member("https://example.com/hooks", "The receiver. Without a URL, events are only recorded."),
        "events": Member(["link.created", "visit"], "Types of events, or prefixes such as `link.*` and `*`."),
        "campaign": Member(17, "Only events of this campaign and its links. 0 removes the filter."),
        "channel": Member(17, "Only events of this channel and its items. 0 removes the filter."),
        "domain": Member(17, "Only events of this branded domain and its links. 0 removes the filter."),
        "active": Member(True, "`false` turns the webhook off; `true` turns it on without failures.", default=True),
        "overlap": Member(3600, "The seconds for which deliveries are also signed with the previous secret."),
    },
    records={
        "Webhook": record(
            id=ID,
            name=text("Shop"),
            url=url_or_empty("https://example.com/hooks"),
            events=array_of(text("link.*", **{"x-known-values": list(PATTERNS)}))
            | {"examples": [["link.created", "visit"]]},
            campaign=or_null(ID),
            channel=or_null(ID),
            domain=or_null(ID),
            active=flag(True),
            reason=text("", description="Why the service turned the webhook off."),
            date=TIMESTAMP,
        ),
        "Delivery": record(
            id=ID,
            message=_MESSAGE | {"description": "The `webhook-id`."},
            type=_TYPE,
            state=choice("delivered", "waiting", "failed", "off")
            | {"description": "`off`: waiting until the webhook is active and has a URL."},
            attempts=number(1),
            attempted=or_null(TIMESTAMP),
            status=or_null(number(200)) | {"description": "The status of the response, or null if there was none."},
            milliseconds=or_null(number(85)),
            response=text("ok", description="The beginning of the response, or why there was none."),
            due=or_null(TIMESTAMP) | {"description": "The time of the next attempt."},
            date=TIMESTAMP,
            data=_DATA,
        ),
        "Event": record(id=ID, message=_MESSAGE, type=_TYPE, timestamp=_TIME, data=_DATA),
    },
    operations=(
        Operation("GET", "/api/webhooks", "List webhooks", listing("webhooks", "Webhook"), query=PAGING),
        Operation(
            "POST",
            "/api/webhooks",
            "Add a webhook",
            success(id=ID, secret=_SECRET),
            webhooks.WebhookCreate,
            {"name": "Shop", "url": "https://example.com/hooks", "events": ["link.created", "visit"]},
            codes=("webhooks_full", "campaign_unknown", "channel_unknown", "domain_unknown"),
            description="The `secret` is shown only once. A user has at most 20 webhooks.",
        ),
        Operation("GET", "/api/webhook/{webhook_id}", "Read a webhook", reading("Webhook"), tagged=True),
        Operation(
            "PUT",
            "/api/webhook/{webhook_id}/update",
            "Change a webhook",
            changed("Webhook has been updated successfully.", "Webhook"),
            webhooks.WebhookUpdate,
            {"events": ["link.*"]},
            codes=("campaign_unknown", "channel_unknown", "domain_unknown"),
            tagged=True,
        ),
        Operation(
            "POST",
            "/api/webhook/{webhook_id}/rotate",
            "Replace the secret of a webhook",
            success(secret=_SECRET),
            webhooks.Rotation,
            {"overlap": 3600},
        ),
        Operation(
            "POST",
            "/api/webhook/{webhook_id}/test",
            "Send a test event",
            done(webhooks.TESTED[True]),
            codes=("webhook_off",),
            description="The event has the type `webhook.test`. See its delivery for the result. If the webhook "
            "has no URL, it is only recorded.",
        ),
        Operation(
            "DELETE",
            "/api/webhook/{webhook_id}/delete",
            "Delete a webhook",
            done("Webhook has been deleted successfully."),
        ),
        Operation(
            "GET",
            "/api/webhook/{webhook_id}/deliveries",
            "List the deliveries of a webhook",
            listing("deliveries", "Delivery"),
            query=PAGING,
        ),
        Operation(
            "POST",
            "/api/delivery/{delivery_id}/retry",
            "Send a delivery again",
            done("The delivery will be sent again within seconds."),
            codes=("webhook_off", "webhook_without_url"),
        ),
        Operation(
            "GET",
            "/api/events",
            "Read events, the oldest first",
            success(
                data=record(
                    perpage=number(15, 1),
                    events=array_of({"$ref": "#/components/schemas/Event"}),
                    next=number(17) | {"description": "The `after` of the next call, also if there are no events."},
                )
            ),
            query=(
                parameter("limit", "The number of events, at most 1000.", type="integer", minimum=1, default=15),
                parameter("after", "The `next` of the previous response.", type="integer", minimum=0, maximum=MAX_ID),
                parameter("type", "Only events of this type or prefix, such as `link.*`.", type="string"),
            ),
            description="No event is missed or repeated if each call sends the `next` of the previous response. A call "
            "with a `type` examines at most 10,000 events. So it may return fewer events than `limit`, or none, while "
            "there are more. Call again at once until `next` is the `after` that you sent.",
        ),
    ),
)
