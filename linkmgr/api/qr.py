"""/api/qr"""

from flask import Blueprint, Response

from linkmgr.api import usual
from linkmgr.api.stats import list_visits
from linkmgr.fields.query import paging
from linkmgr.repository import qr
from linkmgr.resources.qr import QrCode
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok

bp = Blueprint("qr", __name__)
usual.add_routes(bp, QrCode, "read", "add", "update")


@bp.get("/qr")
def index() -> Json:
    return listing("qrs", qr.index(user_id(), **paging()))


@bp.get("/qr/<id:qr_id>/visits")
def visits(qr_id: int) -> Json | Response:
    return list_visits(qr_id, what="QR code")


@bp.delete("/qr/<id:qr_id>/delete")
def delete(qr_id: int) -> Json:
    qr.delete(user_id(), qr_id)
    return ok("QR Code has been deleted successfully.")
