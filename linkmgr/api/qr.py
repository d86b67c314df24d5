"""/api/qr"""

from typing import Any, ClassVar

from flask import Blueprint, Response
from marshmallow import fields

from linkmgr.api.stats import list_visits
from linkmgr.fields import qr as qr_data
from linkmgr.fields.base import Changes, Choice, Matching, New, Text, body
from linkmgr.fields.member import JsonSchema, ref
from linkmgr.fields.query import paging
from linkmgr.fields.urls import MAX_URL
from linkmgr.qr import logos
from linkmgr.repository import qr
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("qr", __name__)

WHITE, BLACK = "rgb(255,255,255)", "rgb(0,0,0)"
_PART = " *(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9]) *"


class Rgb(Matching):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(rf"rgb\({_PART},{_PART},{_PART}\)", "a color such as rgb(255,128,0)", **kwargs)

    def clean(self, text: str) -> str:
        return super().clean(text).replace(" ", "")


class Data(fields.Raw):
    """Any value. The handler validates it, because its form depends on the type."""

    default_error_messages = {"required": "is required"}
    nested = tuple(qr_data.OBJECTS.values())
    json: ClassVar[JsonSchema] = {
        "anyOf": [{"type": "string", "minLength": 1, "maxLength": 4096}, *map(ref, nested)],
        "description": "A string for text, link and phone; an object for vcard, email, sms and wifi. For email and sms "
        "also the recipient alone.",
    }


class QrCodeCreate(New):
    type = Choice(qr_data.TYPES, required=True)
    data = Data(required=True)
    name = Text()
    background = Rgb(load_default=WHITE)
    foreground = Rgb(load_default=BLACK)
    logo = Text(MAX_URL)


class QrCodeUpdate(Changes):
    data = Data(required=True)
    name = Text()
    background = Rgb()
    foreground = Rgb()
    logo = Text(MAX_URL, allow_empty=True)


@bp.get("/qr")
def index() -> Json:
    return listing("qrs", qr.index(user_id(), **paging()))


@bp.get("/qr/<id:qr_id>")
def read(qr_id: int) -> Response:
    code = qr.read(user_id(), qr_id)
    return versioned(code.pop("version"), data=code.pop("statistics"), details=code)


@bp.get("/qr/<id:qr_id>/visits")
def visits(qr_id: int) -> Json | Response:
    return list_visits(qr_id, what="QR code")


@bp.post("/qr/add")
def add() -> Json:
    return ok(**create(user_id(), body(QrCodeCreate)))


@bp.put("/qr/<id:qr_id>/update")
def update(qr_id: int) -> Response:
    change(user_id(), qr_id, body(QrCodeUpdate))
    code = qr.read_current(user_id(), qr_id)
    return updated("QR has been updated successfully.", code.pop("version"), data=code.pop("statistics"), details=code)


@bp.delete("/qr/<id:qr_id>/delete")
def delete(qr_id: int) -> Json:
    qr.delete(user_id(), qr_id)
    return ok("QR Code has been deleted successfully.")


def create(owner: int, new: Json, image: bytes | None = None) -> Json:
    """Store a QR code. `image` is the logo if it was uploaded; `logo` is then its name."""
    return qr.add(owner, code=qr_data.new_code(), **to_row(new, image))


def to_row(new: Json, image: bytes | None = None) -> Json:
    prepared = _prepare(new["type"], new, image)
    return {"name": qr_data.default_name(new["type"], prepared["data"])} | prepared


def change(owner: int, qr_id: int, changes: Json, image: bytes | None = None) -> None:
    stored = qr.find_fixed(owner, qr_id)
    if changes.get("logo") == stored["logo"]:
        changes.pop("logo", None)  # keep the image instead of fetching it again
    qr.update(owner, qr_id, **_prepare(stored["type"], changes, image))


def _prepare(kind: str, members: Json, image: bytes | None = None) -> Json:
    """Replace the data by its stored form, and the logo by its image."""
    data = qr_data.normalize(kind, members["data"])
    prepared = members | {"data": data, "own_alias": qr_data.own_alias(kind, data)}
    if "logo" in members:
        prepared |= {"logo": image or logos.load(members["logo"]), "logo_source": members["logo"]}
    return prepared
