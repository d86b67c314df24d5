"""/api/webhooks, /api/webhook, /api/delivery and /api/events"""

from flask import Blueprint, Response

from linkmgr.api import usual
from linkmgr.errors import AppError
from linkmgr.fields.base import Integer
from linkmgr.fields.bodies import New, body
from linkmgr.fields.member import member
from linkmgr.fields.problems import invalid
from linkmgr.fields.query import paging, query_choice
from linkmgr.fields.times import iso
from linkmgr.outbound.webhooks import new_secret
from linkmgr.repository import outbox, webhooks
from linkmgr.request import scopes
from linkmgr.resources.webhooks import OF_USERS, PATTERNS, Webhook, match_users, users_problem
from linkmgr.web.auth import caller, user_id
from linkmgr.web.responses import Json, listing, ok

bp = Blueprint("webhooks", __name__)

DEFAULT_OVERLAP, MAX_OVERLAP = 86_400, 604_800  # seconds
TESTED = {
    True: "A test event will be delivered within seconds.",
    False: "A test event will be recorded within seconds. This webhook has no URL.",
}


class Rotation(New):
    overlap = member(
        Integer(0, MAX_OVERLAP, load_default=DEFAULT_OVERLAP),
        "The seconds for which deliveries are also signed with the previous secret.",
        3600,
    )


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


usual.add_routes(bp, Webhook, "index", "read", "delete")


@bp.post("/webhooks")
def add() -> Response:
    members = body(Webhook.creates())
    _require_admin(members["events"])
    return usual.add(Webhook, members)


@bp.put("/webhook/<id:webhook_id>/update")
def update(webhook_id: int) -> Response:
    changes = usual.changes(Webhook, webhook_id)
    _require_admin(changes.get("events", []))
    _require_admin_for(webhook_id)
    return usual.change(Webhook, webhook_id, changes)


@bp.post("/webhook/<id:webhook_id>/rotate")
def rotate(webhook_id: int) -> Json:
    secret = new_secret()
    webhooks.rotate(user_id(), webhook_id, secret=secret, **body(Rotation))
    return ok(secret=secret)


@bp.post("/webhook/<id:webhook_id>/test")
def test(webhook_id: int) -> Json:
    return ok(TESTED[webhooks.test(user_id(), webhook_id)])


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
    page, name = paging(first=0), query_choice("type", PATTERNS)
    if page["number"] > 1:
        raise invalid("page is not supported here. Send the 'next' of the last response as after")
    after, pattern = page["after"] or 0, (name or "*").replace("*", "%")
    hidden = None if _may_read_users() else f"{OF_USERS}%"
    rows, last = outbox.events(user_id(), after=after, limit=page["limit"], pattern=pattern, hidden=hidden)
    for event in rows:
        event["timestamp"] = iso(event["timestamp"])
    return ok(data={"perpage": page["limit"], "events": rows, "next": str(last or after)})
