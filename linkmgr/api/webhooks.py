"""/api/webhooks, /api/webhook, /api/delivery and /api/events"""

from urllib.parse import urlsplit

from flask import Blueprint, Response
from marshmallow import ValidationError

from linkmgr.errors import AppError
from linkmgr.fields.base import Boolean, Changes, Integer, New, Text, Url, body, changes_of
from linkmgr.fields.query import paging, query_text
from linkmgr.fields.times import iso
from linkmgr.fields.urls import MAX_URL
from linkmgr.fields.webhooks import OF_USERS, PATTERNS, Events, Filter, match_users, users_problem
from linkmgr.outbound.webhooks import is_refused, new_secret
from linkmgr.repository import webhooks
from linkmgr.web import scopes
from linkmgr.web.auth import caller, user_id
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("webhooks", __name__)

DEFAULT_OVERLAP, MAX_OVERLAP = 86_400, 604_800  # seconds
TESTED = {
    True: "A test event will be delivered within seconds.",
    False: "A test event will be recorded within seconds. This webhook has no URL.",
}


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


class WebhookCreate(New):
    name = Text(required=True)
    url = ReceiverUrl(MAX_URL)
    events = Events(required=True)
    campaign = Filter()
    channel = Filter()
    domain = Filter()
    active = Boolean()


class WebhookUpdate(Changes):
    name = Text()
    url = ReceiverUrl(MAX_URL, allow_empty=True)
    events = Events()
    campaign = Filter()
    channel = Filter()
    domain = Filter()
    active = Boolean()


class Rotation(New):
    overlap = Integer(0, MAX_OVERLAP, load_default=DEFAULT_OVERLAP)


def _may_read_users() -> bool:
    """Return False for a key of an administrator without the scope `admin`."""
    key = caller().key
    return key is None or not key.is_admin or bool(caller().admin)


def _require_admin(patterns: list[str]) -> None:
    if match_users(patterns) and not _may_read_users():
        raise AppError("scope_missing", scope=scopes.ADMIN)
    if not caller().admin and (problem := users_problem(patterns)):
        raise AppError("invalid", problems=f"events {problem}")


def _require_admin_for(webhook_id: int) -> None:
    if not _may_read_users():  # other requests need no further statement
        _require_admin(webhooks.read(user_id(), webhook_id)["events"])


@bp.get("/webhooks")
def index() -> Json:
    return listing("webhooks", webhooks.index(user_id(), **paging()))


@bp.post("/webhooks")
def add() -> Json:
    new, secret = body(WebhookCreate), new_secret()
    _require_admin(new["events"])
    return ok(id=webhooks.add(user_id(), secret=secret, **new), secret=secret)


@bp.get("/webhook/<id:webhook_id>")
def read(webhook_id: int) -> Response:
    webhook = webhooks.read(user_id(), webhook_id)
    return versioned(webhook.pop("version"), data=webhook)


@bp.put("/webhook/<id:webhook_id>/update")
def update(webhook_id: int) -> Response:
    changes = changes_of(WebhookUpdate, lambda: webhooks.read(user_id(), webhook_id))
    _require_admin(changes.get("events", []))
    _require_admin_for(webhook_id)
    webhook = webhooks.update(user_id(), webhook_id, **changes)
    return updated("Webhook has been updated successfully.", webhook.pop("version"), data=webhook)


@bp.post("/webhook/<id:webhook_id>/rotate")
def rotate(webhook_id: int) -> Json:
    secret = new_secret()
    webhooks.rotate(user_id(), webhook_id, secret=secret, **body(Rotation))
    return ok(secret=secret)


@bp.post("/webhook/<id:webhook_id>/test")
def test(webhook_id: int) -> Json:
    return ok(TESTED[webhooks.test(user_id(), webhook_id)])


@bp.delete("/webhook/<id:webhook_id>/delete")
def delete(webhook_id: int) -> Json:
    webhooks.delete(user_id(), webhook_id)
    return ok("Webhook has been deleted successfully.")


@bp.get("/webhook/<id:webhook_id>/deliveries")
def deliveries(webhook_id: int) -> Json:
    _require_admin_for(webhook_id)
    page = webhooks.deliveries(user_id(), webhook_id, **paging())
    if not page.rows:
        webhooks.read(user_id(), webhook_id)  # a webhook that does not exist has no deliveries
    return listing("deliveries", page)


@bp.post("/delivery/<id:delivery_id>/retry")
def retry(delivery_id: int) -> Json:
    webhooks.retry(user_id(), delivery_id)
    return ok("The delivery will be sent again within seconds.")


@bp.get("/events")
def events() -> Json:
    """Return events, the oldest first. `next` is the `after` of the next call, also if there are no events."""
    page, name = paging(first=0), query_text("type")
    if page["number"] > 1:
        raise AppError("invalid", problems="page is not supported here. Send the 'next' of the last response as after")
    if name and name not in PATTERNS:
        raise AppError("invalid", problems=f"type must be one of {', '.join(PATTERNS)}")
    after, pattern = page["after"] or 0, (name or "*").replace("*", "%")
    hidden = None if _may_read_users() else f"{OF_USERS}%"
    rows, last = webhooks.events(user_id(), after=after, limit=page["limit"], pattern=pattern, hidden=hidden)
    for event in rows:
        event["timestamp"] = iso(event["timestamp"])
    return ok(data={"perpage": page["limit"], "events": rows, "next": last or after})
