"""/api/bio"""

from flask import Blueprint

from linkmgr.api import usual
from linkmgr.fields.base import body
from linkmgr.resources.bio import BioPage
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, ok

bp = Blueprint("bio", __name__)
usual.add_routes(bp, BioPage, "index", "read", "update", "delete")


@bp.post("/bio/add")
def add() -> Json:
    page = BioPage.create(user_id(), body(BioPage.creates()))
    return ok(**{member: page[member] for member in ("id", "alias", "shorturl")})
