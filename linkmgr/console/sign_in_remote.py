"""Sign-in as the user whose name an authenticating proxy sends with each request."""

from flask import Blueprint, g, redirect, request, session, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import login
from linkmgr.core.errors import AppError
from linkmgr.core.web import security_headers, sessions
from linkmgr.features.signin import remote_user

bp = Blueprint("sign_in_remote", __name__, url_prefix="/login/network")
bp.after_request(security_headers.keep_private)


@bp.before_app_request
def follow() -> ResponseReturnValue | None:
    """Sign the user of the proxy in, and out when the proxy sends another one. Sessions of another
    origin, such as a sign-in link, remain."""
    if request.endpoint == "login.form" and request.method == "GET" and "stay" not in request.args:
        is_new = bool(remote_user.name()) and sessions.current() is None
        return redirect(url_for("sign_in_remote.begin"), code=303) if is_new else None
    if request.path.startswith(("/console", "/account")) and sessions.REMOTE_USER in session:
        name = remote_user.name()
        g.by_proxy = name == session[sessions.REMOTE_USER]
        if name and not g.by_proxy:
            sessions.end()
            return redirect(url_for("login.form"), code=303)
    return None


@bp.get("")
def begin() -> ResponseReturnValue:
    name = remote_user.name()
    try:
        if not name:
            raise AppError("remote_user_missing")
        response = login.begin_session(remote_user.user(name), asks_code=False)
    except AppError as error:
        return login.page(error)
    session[sessions.REMOTE_USER] = name
    return response
