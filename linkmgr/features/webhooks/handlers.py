from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import shapes
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.query import NAMED_PAGING, PAGING, Parameter, named_paging, paging, query_choice
from linkmgr.core.fields.rotation import Rotation
from linkmgr.core.fields.times import iso
from linkmgr.core.web import scopes
from linkmgr.core.web.auth import caller, user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, changed, created, listing, ok, reading
from linkmgr.features.webhooks import outbox
from linkmgr.features.webhooks import repository as webhooks
from linkmgr.features.webhooks.schema import (
    CARRIED,
    OF_USERS,
    PATTERNS,
    TEST,
    TYPES,
    Webhook,
    create_webhook,
    match_users,
    users_problem,
)
from linkmgr.features.webhooks.sender import new_secret

bp = Blueprint("webhooks", __name__, url_prefix="/api")

DEFAULT_OVERLAP = 86_400  # seconds
TESTED = {
    True: "A test event will be delivered within seconds.",
    False: "A test event will be recorded within seconds. This webhook has no URL.",
}

_TIME = shapes.text("2026-11-21T09:30:00Z", pattern="^[0-9-]{10}T[0-9:]{8}Z$")
_MESSAGE = shapes.text("msg_1795702530123456", pattern="^msg_[0-9]+$")
_TYPE = shapes.choice("link.created", *TYPES[1:], TEST)
_SECRET = shapes.text(
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=", pattern="^whsec_[A-Za-z0-9+/=]{44}$"
)
_DATA: JsonSchema = shapes.ANY_OBJECT | {
    "description": "The record as its GET shows it.",
    "examples": [{"id": 17, "shorturl": "https://go.example.org/summer"}],
}
_RECORDS = {
    "Delivery": shapes.object_of(
        id=shapes.ID,
        message=_MESSAGE | {"description": "The `webhook-id`."},
        type=_TYPE,
        state=shapes.choice("delivered", "waiting", "failed", "off")
        | {"description": "`off`: waiting until the webhook is active and has a URL."},
        attempts=1,
        attempted=shapes.or_null(shapes.TIMESTAMP),
        status=shapes.or_null(200)
        | {"description": "The status of the response, or null if there was none."},
        milliseconds=shapes.or_null(85),
        response=shapes.text("ok", description="The beginning of the response, or why there was none."),
        due=shapes.or_null(shapes.TIMESTAMP) | {"description": "The time of the next attempt."},
        date=shapes.TIMESTAMP,
        data=_DATA,
    ),
    "Event": shapes.with_actor(
        shapes.object_of(id=shapes.ID, message=_MESSAGE, type=_TYPE, timestamp=_TIME, data=_DATA)
    ),
    "Actor": shapes.ACTOR,
}
_CARRIED = {"link": "Link", "qr": "QrCode", "import": "Import"} | {
    stored.words.path: stored.resource.__name__ for stored in CARRIED
}


def _records() -> dict[str, JsonSchema]:
    return shapes.records_of(Webhook) | _RECORDS


def _carried_by(event: str) -> str:
    """Return the name of the record that an event carries, or "" for another object."""
    subject, _, change = event.partition(".")
    return _CARRIED.get(subject, "") if change in ("created", "updated", "finished") else ""


SECTION = Section(
    "webhooks",
    "Webhooks and events",
    prose(__file__, outbox=outbox, mebibytes=outbox.MAX_BYTES >> 20),
    _records,
    events={event: _carried_by(event) for event in TYPES},
)
_EVENTS = {
    "limit": Parameter("The number of events, at most 1000.", type="integer", minimum=1, default=15),
    "after": Parameter("The `next` of the previous response.", **shapes.CURSOR),
    "type": Parameter("Only events of this type or prefix, such as `link.*`.", type="string"),
}
_UNKNOWN = ("campaign_unknown", "channel_unknown", "domain_unknown")


def _may_read_users() -> bool:
    """Return False for a key of an administrator without the scope `admin`."""
    key = caller().key
    return key is None or not key.is_admin or bool(caller().admin)


def _require_admin(patterns: list[str]) -> None:
    if match_users(patterns) and not _may_read_users():
        raise AppError("scope_missing", scope=scopes.ADMIN)
    if not caller().admin and (problem := users_problem(patterns)):
        raise invalid(f"events {problem}")


def _require_admin_for(webhook_id: int) -> None:
    if not _may_read_users():  # other requests need no further statement
        _require_admin(webhooks.read(user_id(), webhook_id)["events"])


@bp.get("/webhooks")
@operation("webhooks:read", "webhooks.list", shapes.listing_schema("webhooks", Webhook), query=NAMED_PAGING)
def index() -> Json:
    """List webhooks."""
    return listing("webhooks", webhooks.index(user_id(), **named_paging()), Webhook)


@bp.get("/webhook/<id:webhook_id>")
@operation("webhooks:read", "webhooks.get", shapes.reading_schema(Webhook), has_etag=True)
def read(webhook_id: int) -> Response:
    """Read a webhook."""
    return reading(Webhook, webhooks.read(user_id(), webhook_id))


@bp.post("/webhooks")
@operation(
    "webhooks:create",
    "webhooks.create",
    shapes.created_schema(Webhook, secret=_SECRET),
    body=Webhook.creates(),
    example={"name": "Shop", "url": "https://example.com/hooks", "events": ["link.created", "visit"]},
    errors=("webhooks_full", *_UNKNOWN),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Add a webhook.

    The `secret` is shown only once. A user has at most 20 webhooks.
    """
    _require_admin(new["events"])
    return created(Webhook, create_webhook(user_id(), new), "secret")


@bp.put("/webhook/<id:webhook_id>/update")
@operation(
    "webhooks:write",
    "webhooks.update",
    shapes.changed_schema("Webhook has been updated successfully.", Webhook),
    body=Webhook.updates(),
    stored=webhooks.read,
    example={"events": ["link.*"]},
    errors=_UNKNOWN,
    row="webhooks",
    has_etag=True,
)
def update(changes: Row, webhook_id: int) -> Response:
    """Change a webhook."""
    _require_admin(changes["events"] or [])
    _require_admin_for(webhook_id)
    return changed(
        "Webhook has been updated successfully.", Webhook, webhooks.update(user_id(), webhook_id, changes)
    )


@bp.delete("/webhook/<id:webhook_id>/delete")
@operation(
    "webhooks:write", "webhooks.delete", shapes.done("Webhook has been deleted successfully."), row="webhooks"
)
def delete(webhook_id: int) -> Json:
    """Delete a webhook."""
    webhooks.delete(user_id(), webhook_id)
    return ok("Webhook has been deleted successfully.")


@bp.post("/webhook/<id:webhook_id>/rotate")
@operation(
    "webhooks:write",
    "webhooks.rotateSecret",
    shapes.created_schema(Webhook, secret=_SECRET),
    body=Rotation,
    values={"overlap": DEFAULT_OVERLAP},
    has_etag=True,
)
def rotate(rotation: Row, webhook_id: int) -> Response:
    """Replace the secret of a webhook.

    Deliveries are also signed with the previous secret for `overlap` seconds, by default
    {overlap:,}.
    """
    secret = new_secret()
    overlap = DEFAULT_OVERLAP if rotation["overlap"] is None else rotation["overlap"]
    row = webhooks.rotate(user_id(), webhook_id, secret=secret, overlap=overlap)
    return created(Webhook, row | {"secret": secret}, "secret")


@bp.post("/webhook/<id:webhook_id>/test")
@operation("webhooks:write", "webhooks.test", shapes.done(TESTED[True]), errors=("webhook_off",))
def test(webhook_id: int) -> Json:
    """Send a test event.

    The event has the type `webhook.test`. See its delivery for the result. If the webhook has no
    URL, it is only recorded.
    """
    return ok(TESTED[webhooks.test(user_id(), webhook_id)])


@bp.get("/webhook/<id:webhook_id>/deliveries")
@operation(
    "webhooks:read", "webhooks.listDeliveries", shapes.listing_schema("deliveries", "Delivery"), query=PAGING
)
def deliveries(webhook_id: int) -> Json:
    """List the deliveries of a webhook."""
    _require_admin_for(webhook_id)
    page = webhooks.deliveries(user_id(), webhook_id, **paging())
    if not page.rows:
        webhooks.read(user_id(), webhook_id)  # a webhook that does not exist has no deliveries
    return listing("deliveries", page)


@bp.post("/delivery/<id:delivery_id>/retry")
@operation(
    "webhooks:write",
    "webhooks.retry",
    shapes.done("The delivery will be sent again within seconds."),
    errors=("webhook_off", "webhook_without_url"),
)
def retry(delivery_id: int) -> Json:
    """Send a delivery again."""
    webhooks.retry(user_id(), delivery_id)
    return ok("The delivery will be sent again within seconds.")


@bp.get("/events")
@operation(
    "webhooks:read",
    "webhooks.listEvents",
    shapes.success(
        "EventList",
        data=shapes.object_of(
            perpage=shapes.number(15, 1),
            events=shapes.array_of(shapes.ref("Event")),
            next=shapes.CURSOR
            | {"description": "The `after` of the next call, also if there are no events."},
        ),
    ),
    query=_EVENTS,
)
def events() -> Json:
    """Read events, the oldest first.

    No event is missed or repeated if each call sends the `next` of the previous response. A call
    with a `type` examines at most 10,000 events. So it may return fewer events than `limit`, or
    none, while there are more. Call again at once until `next` is the `after` that you sent.
    """
    page, name = paging(first=0), query_choice("type", PATTERNS)
    if page["number"] > 1:
        raise invalid("page is not supported here. Send the 'next' of the last response as after")
    after, pattern = page["after"] or 0, (name or "*").replace("*", "%")
    hidden = [] if _may_read_users() else [f"{prefix}%" for prefix in OF_USERS]
    rows, last = outbox.events(user_id(), after=after, limit=page["limit"], pattern=pattern, hidden=hidden)
    for event in rows:
        event.update(event.pop("extra"), timestamp=iso(event["timestamp"]))
    return ok(data={"perpage": page["limit"], "events": rows, "next": str(last or after)})
