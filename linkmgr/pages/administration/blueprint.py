"""The blueprint of the pages that only administrators can open."""

from flask import Blueprint, g

from linkmgr.errors import AppError
from linkmgr.pages import signed_in
from linkmgr.web import security_headers

bp = Blueprint("administration", __name__, url_prefix="/console/administration")
bp.before_request(signed_in.require_session)
bp.after_request(security_headers.keep_private)


@bp.before_request
def _require_administrator() -> None:
    if not g.admin:
        raise AppError("administration_page")
