"""/healthz: whether the service can do its work."""

from flask import Blueprint

from linkmgr.database import row
from linkmgr.envelope import Json, ok

bp = Blueprint("health", __name__)


@bp.get("/healthz")
def healthz() -> Json:
    row("SELECT 1 AS alive")
    return ok()
