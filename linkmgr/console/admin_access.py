from flask import Blueprint, g

from linkmgr.console import frame
from linkmgr.core.errors import AppError


def _require_administrator() -> None:
    if not g.admin:
        raise AppError("administration_page")


def blueprint(name: str) -> Blueprint:
    bp = frame.blueprint(name, "/console/administration")
    bp.before_request(_require_administrator)
    return bp


bp = blueprint("administration")
