"""The frame of all pages of the console: the session, the navigation, and how pages show times and
lists."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from flask import Blueprint, flash, g, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.wrappers import Response

from linkmgr.console import signed_in
from linkmgr.core.errors import AppError
from linkmgr.core.web import error_handlers, security_headers
from linkmgr.core.web import request as web_request


def _allow_previews(response: Response) -> Response:
    """Let scripts fetch pages of the console, and forms frame them, which the policy of other pages
    forbids."""
    name, policy = security_headers.policy(request.environ)
    frames = "; frame-src 'self'" if g.get("has_frame") else ""
    response.headers.setdefault(name, f"{policy}; connect-src 'self'{frames}")
    return response


def blueprint(name: str, url_prefix: str) -> Blueprint:
    bp = Blueprint(name, __name__, url_prefix=url_prefix)
    bp.before_request(signed_in.require_session)
    bp.before_request(signed_in.require_password)
    bp.after_request(security_headers.keep_private)
    bp.after_request(_allow_previews)
    return bp


bp = blueprint("console", "/console")


@bp.app_errorhandler(NotFound)
@bp.app_errorhandler(MethodNotAllowed)
def _identify_lost_user(error: HTTPException) -> ResponseReturnValue:
    """Read the session below /console also where no route is, because the 404 page then keeps the
    navigation."""
    is_below = request.path.startswith(f"{bp.url_prefix}/") and web_request.current().foreign_host is None
    if request.routing_exception and is_below:
        try:
            signed_in.require_session()
        except Exception as refusal:
            return error_handlers.handle(refusal)
    return error_handlers.handle(error)


# Sentences for a form in place of those for a program
_FILES = {
    "file_missing": "There is no file, or it is empty. Choose another one.",
    "bulk_too_large": "The file is too large. The limit is 2 MiB. Divide it.",
}


def file_problem(error: AppError) -> str:
    return _FILES.get(error.code, error.message)


class Chip(NamedTuple):
    label: str
    url: str


def flash_with_warnings(sentence: str, labels: Mapping[str, str]) -> None:
    flash(sentence, "success")
    for warning in web_request.current().warnings:
        worded = re.sub("^The member '([a-z]+)'", lambda member: labels.get(member[1], member[0]), warning)
        name, mark, rest = worded.partition(": ")
        flash(f"{labels.get(name, name) if mark else name}{mark}{rest}", "warning")
