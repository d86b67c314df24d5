"""/api/qr"""

from flask import Blueprint, Response

from linkmgr.api.stats import list_visits
from linkmgr.fields.base import body
from linkmgr.fields.query import paging
from linkmgr.repository import qr
from linkmgr.resources.qr import QrCode
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("qr", __name__)


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
    return ok(**QrCode.create(user_id(), body(QrCode.creates())))


@bp.put("/qr/<id:qr_id>/update")
def update(qr_id: int) -> Response:
    QrCode.change(user_id(), qr_id, body(QrCode.updates()))
    code = qr.read_current(user_id(), qr_id)
    return updated("QR has been updated successfully.", code.pop("version"), data=code.pop("statistics"), details=code)


@bp.delete("/qr/<id:qr_id>/delete")
def delete(qr_id: int) -> Json:
    qr.delete(user_id(), qr_id)
    return ok("QR Code has been deleted successfully.")
