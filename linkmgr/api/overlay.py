"""/api/overlay"""

from typing import Any

from flask import Blueprint, Response
from marshmallow import Schema, ValidationError, validates_schema

from linkmgr.db.statements import Row
from linkmgr.fields import overlays
from linkmgr.fields.base import Changes, Choice, Color, New, Target, Text, body, changes_of
from linkmgr.fields.query import paging
from linkmgr.repository import overlay
from linkmgr.web.auth import user_id
from linkmgr.web.errors import RETRY_SECONDS, AppError
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("overlay", __name__)

TYPES = ("contact", "poll", "message", "newsletter", "image", "coupon")
POSITIONS = ("top", "bottom", "left", "right", "center")
MAX_MESSAGE = 2000
_TRIES = 5  # while concurrent requests change the type or the message


class Overlay(Schema):
    @validates_schema
    def check_message(self, data: dict[str, Any], **_: Any) -> None:
        overlays.check_message(data.get("type"), data.get("message"))


class NewOverlay(New, Overlay):
    type = Choice(TYPES, required=True)
    name = Text(required=True)
    message = Text(MAX_MESSAGE, multiline=True)
    link = Target()
    label = Text()
    position = Choice(POSITIONS)
    color = Color()
    background = Color()


class OverlayChanges(Changes, Overlay):
    type = Choice(TYPES)
    name = Text()
    message = Text(MAX_MESSAGE, multiline=True, allow_empty=True)
    link = Target(allow_empty=True)
    label = Text(allow_empty=True)
    position = Choice(POSITIONS)
    color = Color()
    background = Color()


def _check_with_stored(changes: dict[str, Any], stored: Row) -> None:
    """Check a new type with the stored message, or a new message with the stored type. What is stored already remains
    valid."""
    after = stored | changes
    if (after["type"], after["message"]) == (stored["type"], stored["message"]):
        return
    try:
        overlays.check_message(after["type"], after["message"])
    except ValidationError as error:
        raise AppError("invalid", problems=f"message {error.messages[0]}") from None


def _update(overlay_id: int, changes: dict[str, Any]) -> Row:
    """Write changes. If only a type or only a message was sent, write it to the overlay that it was checked with."""
    is_partial = ("type" in changes) != ("message" in changes)
    for _ in range(_TRIES):
        stored = overlay.read(user_id(), overlay_id) if is_partial else None
        if stored:
            _check_with_stored(changes, stored)
        if record := overlay.update(user_id(), overlay_id, **changes, checked=stored):
            return record
    raise AppError("busy", seconds=RETRY_SECONDS)


@bp.get("/overlay")
def index() -> Json:
    return listing("cta", overlay.index(user_id(), **paging()))


@bp.get("/overlay/<id:overlay_id>")
def read(overlay_id: int) -> Response:
    record = overlay.read(user_id(), overlay_id)
    return versioned(record.pop("version"), data=record)


@bp.get("/overlay/<id:overlay_id>/answers")
def answers(overlay_id: int) -> Json:
    return listing("answers", overlay.answers(user_id(), overlay_id, **paging()))


@bp.post("/overlay/add")
def add() -> Json:
    return ok(id=overlay.add(user_id(), **body(NewOverlay)))


@bp.put("/overlay/<id:overlay_id>/update")
def update(overlay_id: int) -> Response:
    changes = changes_of(OverlayChanges, lambda: overlay.read(user_id(), overlay_id))
    record = _update(overlay_id, changes)
    return updated("Overlay has been updated successfully.", record.pop("version"), data=record)


@bp.delete("/overlay/<id:overlay_id>/delete")
def delete(overlay_id: int) -> Json:
    overlay.delete(user_id(), overlay_id)
    return ok("Overlay has been deleted successfully.")
