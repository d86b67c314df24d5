from flask import g

from linkmgr.console import frame
from linkmgr.core.errors import AppError

bp = frame.blueprint("administration", "/console/administration")


@bp.before_request
def _require_administrator() -> None:
    if not g.admin:
        raise AppError("administration_page")
