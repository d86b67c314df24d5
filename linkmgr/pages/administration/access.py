from flask import g

from linkmgr.errors import AppError
from linkmgr.pages.console import frame

bp = frame.blueprint("administration", "/console/administration")


@bp.before_request
def _require_administrator() -> None:
    if not g.admin:
        raise AppError("administration_page")
