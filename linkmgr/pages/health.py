"""/healthz: respond with 200 and the version if the database responds."""

from flask import Blueprint

from linkmgr.repository import connections
from linkmgr.settings import RELEASE
from linkmgr.web.responses import Json, ok

bp = Blueprint("health", __name__)


@bp.get("/healthz")
def healthz() -> Json:
    connections.check()
    return ok(version=RELEASE)
