"""/healthz: respond with 200 if the database responds."""

from flask import Blueprint

from linkmgr.db.statements import row
from linkmgr.web.responses import Json, ok

bp = Blueprint("health", __name__)


@bp.get("/healthz")
def healthz() -> Json:
    row("SELECT 1 AS alive")
    return ok()
