"""/login, and /login/<token> for single-use sign-in links. Both redirect to the console."""

from functools import cache

import ua_parser
from flask import Blueprint, current_app, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.core import keys
from linkmgr.core.errors import AppError
from linkmgr.core.feature import has_feature
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import settings
from linkmgr.core.web import attempts, passwords, security_headers, session_store, sessions
from linkmgr.core.web import request as web_request
from linkmgr.public.home import first_page
from linkmgr.repository import account as accounts
from linkmgr.visits import counting
from linkmgr.visits.geoip import find_location

# Labels of other ways to sign in, by the blueprints to whose `begin` their buttons lead
_WAYS = {"sign_in_oidc": "Sign in with {name}", "sign_in_remote": "Sign in with the account of your network"}

bp = Blueprint("login", __name__)
bp.after_request(security_headers.keep_private)

_MAX_NAME = 60  # characters of the names of a browser and a system
_MAX_ID_TOKEN = 4096  # characters; the provider gets it back in a URL


@cache
def _dummy_hash() -> str:
    """Return a hash to compare with for unknown e-mail addresses, so that they take as long as
    known ones."""
    return passwords.hashed(keys.new_token())


@bp.record_once
def _cache_dummy_hash(_state: object) -> None:
    _dummy_hash()  # compute it at startup, because a slower first request would reveal an unknown address


def _authenticate(email: str, password: str) -> int | None:
    """Return the user id, or None. Unknown and known e-mail addresses
    take the same steps, so that timing does not reveal accounts."""
    account = session_store.find_credentials(email.replace("\0", ""))
    user_id, password_hash = account["id"] or 0, account["password_hash"] or _dummy_hash()
    if limit := attempts.by_browser(user_id, password_hash):
        name = f"user {user_id}"
    else:
        name, limit = account["bucket"], attempts.by_account(account["bucket"])
    is_correct = attempts.matches(password, password_hash, attempts.by_client(), limit, account=name)
    return int(user_id) if is_correct and user_id else None


def _client() -> dict[str, str]:
    parsed = ua_parser.parse(request.headers.get("User-Agent", "")[: counting.MAX_AGENT])
    return {
        "browser": parsed.user_agent.family[:_MAX_NAME] if parsed.user_agent else "",
        "system": parsed.os.family[:_MAX_NAME] if parsed.os else "",
        "place": (find_location(web_request.address()).country.name or "")[:_MAX_NAME],
    }


def page(error: AppError | None = None, email: str = "") -> ResponseReturnValue:
    """Return the page for signing in, with what prevented it before."""
    shown = render_template(
        "login.html", email=email, error=error and error.message, ways=ways(), passkeys=offers_passkeys()
    )
    if error is None:
        return shown
    return shown, error.status, {"Retry-After": str(error.seconds)} if error.seconds is not None else {}


def ways() -> dict[str, str]:
    """Return the labels of other ways to sign in, by their URLs."""
    offered = {name: text for name, text in _WAYS.items() if name in current_app.blueprints}
    return {
        url_for(f"{name}.begin"): text.format(name=settings().oidc_name) for name, text in offered.items()
    }


def offers_passkeys() -> bool:
    return has_feature("signin") and session_store.has_passkeys()


@bp.get("/login")
def form() -> ResponseReturnValue:
    current = sessions.current()
    if current and not current["suspended"]:
        return redirect(first_page(), code=303)
    return page()


@bp.post("/login")
def sign_in() -> ResponseReturnValue:
    if not settings().passwords:
        raise AppError("passwords_off")
    email = request.form.get("email", "").strip()
    user_id = _authenticate(email, request.form.get("password", ""))
    return page(AppError("sign_in_failed"), email) if user_id is None else begin_session(user_id)


@bp.get("/login/<token>")
def confirm_link(token: str) -> str:
    """Show the sign-in button. GET does not consume the link, because mail scanners and link
    previews fetch it."""
    if not session_store.is_usable(keys.digest(token)):
        raise AppError("link_spent")
    return render_template("login_link.html", signed_in=sessions.current() is not None)


@bp.post("/login/<token>")
def use_link(token: str) -> Response:
    session = keys.new_token()
    begun = session_store.consume_link(
        keys.digest(token), session=keys.digest(session), asks_code=has_feature("signin"), **_client()
    )
    if begun is None:
        raise AppError("link_spent")
    return _start_session(begun["user_id"], session, is_pending=begun["pending"])


def begin_session(user_id: int, *, asks_code: bool = True, id_token: str = "") -> Response:
    """Sign a user in. One who has one-time codes is asked for one, unless what the user has shown
    includes a second factor. `id_token` is that of the provider at which the user has signed in, if
    it is one."""
    token = keys.new_token()
    is_pending = session_store.add_session(
        user_id,
        session=keys.digest(token),
        asks_code=asks_code and has_feature("signin"),
        id_token=keys.seal(user_id, id_token) if 0 < len(id_token) <= _MAX_ID_TOKEN else "",
        **_client(),
    )
    return _start_session(user_id, token, is_pending=is_pending)


def leave(url: str, heading: str) -> Response:
    """Lead from a form to another website. The policy of our pages forbids a form to redirect
    there."""
    response = make_response(render_template("leave.html", url=url, heading=heading))
    response.headers["Refresh"] = f"0; url={url}"
    return response


def _start_session(user_id: int, token: str, *, is_pending: bool) -> Response:
    sessions.begin(token)
    return redirect(url_for("second_factor.code"), code=303) if is_pending else show_first_page(user_id)


def show_first_page(user_id: int) -> Response:
    """Remember the browser of a complete sign-in, notify the user of one that was not known, and
    return to the page that it asked for before."""
    password_hash = accounts.password_hash(user_id)
    if attempts.by_browser(user_id, password_hash) is None:
        hooks().notify(user_id, "new_browser", **_client())
    attempts.remember_browser(user_id, password_hash)
    return redirect(sessions.take_page() or first_page(), code=303)
