"""/api/webhooks, /api/webhook, /api/delivery and /api/events"""

from linkmgr.api import webhooks
from linkmgr.fields.member import JsonSchema
from linkmgr.fields.query import PAGING, Parameter
from linkmgr.openapi.model import Operation
from linkmgr.openapi.usual import section
from linkmgr.resources import shapes as js
from linkmgr.resources.kinds import KINDS
from linkmgr.resources.webhooks import TEST, TYPES, Webhook

_TIME = js.text("2026-11-21T09:30:00Z", pattern="^[0-9-]{10}T[0-9:]{8}Z$")
_MESSAGE = js.text("msg_17", pattern="^msg_[0-9]+$")
_TYPE = js.choice("link.created", *TYPES[1:], TEST)
_SECRET = js.text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=", pattern="^whsec_[A-Za-z0-9+/=]{44}$")
_DATA: JsonSchema = {
    "type": "object",
    "description": "The record as its GET shows it.",
    "examples": [{"id": 17, "shorturl": "https://go.example.org/summer"}],
}

_RECORDS = {"link": "Link", "qr": "QrCode", "import": "Import"} | {kind.path: kind.__name__ for kind in KINDS}


def _record_of(event: str) -> str:
    kind, _, change = event.partition(".")
    return _RECORDS.get(kind, "") if change in ("created", "updated", "finished") else ""


SECTION = section(
    Webhook,
    "Webhooks and events",
    events={event: _record_of(event) for event in TYPES},
    change={"events": ["link.*"]},
    codes=("campaign_unknown", "channel_unknown", "domain_unknown"),
    added=("webhooks_full",),
    responses={"add": js.created("Webhook", secret=_SECRET)},
    records={
        "Delivery": js.record(
            id=js.ID,
            message=_MESSAGE | {"description": "The `webhook-id`."},
            type=_TYPE,
            state=js.choice("delivered", "waiting", "failed", "off")
            | {"description": "`off`: waiting until the webhook is active and has a URL."},
            attempts=1,
            attempted=js.or_null(js.TIMESTAMP),
            status=js.or_null(200) | {"description": "The status of the response, or null if there was none."},
            milliseconds=js.or_null(85),
            response=js.text("ok", description="The beginning of the response, or why there was none."),
            due=js.or_null(js.TIMESTAMP) | {"description": "The time of the next attempt."},
            date=js.TIMESTAMP,
            data=_DATA,
        ),
        "Event": js.record(id=js.ID, message=_MESSAGE, type=_TYPE, timestamp=_TIME, data=_DATA),
    },
    others=(
        Operation(
            "POST /api/webhook/{webhook_id}/rotate",
            "Replace the secret of a webhook",
            js.success(secret=_SECRET),
            webhooks.Rotation,
        ),
        Operation(
            "POST /api/webhook/{webhook_id}/test",
            "Send a test event",
            js.done(webhooks.TESTED[True]),
            codes=("webhook_off",),
        ),
        Operation(
            "GET /api/webhook/{webhook_id}/deliveries",
            "List the deliveries of a webhook",
            js.listing("deliveries", "Delivery"),
            query=PAGING,
        ),
        Operation(
            "POST /api/delivery/{delivery_id}/retry",
            "Send a delivery again",
            js.done("The delivery will be sent again within seconds."),
            codes=("webhook_off", "webhook_without_url"),
        ),
        Operation(
            "GET /api/events",
            "Read events, the oldest first",
            js.success(
                data=js.record(
                    perpage=js.number(15, 1),
                    events=js.array_of(js.ref("Event")),
                    next=js.CURSOR | {"description": "The `after` of the next call, also if there are no events."},
                )
            ),
            query={
                "limit": Parameter("The number of events, at most 1000.", type="integer", minimum=1, default=15),
                "after": Parameter("The `next` of the previous response.", **js.CURSOR),
                "type": Parameter("Only events of this type or prefix, such as `link.*`.", type="string"),
            },
        ),
    ),
)
