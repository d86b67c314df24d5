"""/healthz: respond with 200 if the database responds."""

from flask import Blueprint

from linkmgr.repository import connections
from linkmgr.web.responses import Json, ok

bp = Blueprint("health", __name__)


@bp.get("/healthz")
def healthz() -> Json:
    connections.check()
    return ok()
