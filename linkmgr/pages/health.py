"""/healthz: respond with 200 and the version if the database responds."""

from flask import Blueprint

from linkmgr.repository import service
from linkmgr.settings import RELEASE
from linkmgr.web.responses import Json, ok

bp = Blueprint("health", __name__)


@bp.get("/healthz")
def healthz() -> Json:
    service.check()
    return ok(version=RELEASE)
