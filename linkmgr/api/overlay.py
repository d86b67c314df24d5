"""/api/overlay"""

from flask import Blueprint

from linkmgr.api import usual
from linkmgr.fields.query import paging
from linkmgr.repository import overlay
from linkmgr.resources.overlay import Overlay
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing

bp = Blueprint("overlay", __name__)
usual.add_routes(bp, Overlay)


@bp.get("/overlay/<id:overlay_id>/answers")
def answers(overlay_id: int) -> Json:
    return listing("answers", overlay.answers(user_id(), overlay_id, **paging()))
