"""Browser sessions. Flask's signed cookie contains a random token; the session itself is a row."""

from datetime import timedelta

from flask import Flask, Request, Response, session
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin

from linkmgr import keys
from linkmgr.db.statements import Row
from linkmgr.repository import login
from linkmgr.settings import settings
from linkmgr.web import middleware

_TOKEN = "token"  # noqa: S105 - the name of the token in the cookie
LIFETIME = timedelta(days=30)


class _Interface(SecureCookieSessionInterface):
    """Skip requests without a cookie and responses that do not use the session.

    Flask's own class derives the signing keys for each request and the cookie's attributes for each response.
    """

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        return super().open_session(app, request) if "HTTP_COOKIE" in request.environ else SecureCookieSession()

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        if session.accessed:
            super().save_session(app, session, response)


def init_app(app: Flask) -> None:
    app.session_interface = _Interface()
    secure = settings().base_url.startswith("https://")
    app.config.update(
        SESSION_COOKIE_NAME="__Host-linkmgr" if secure else "linkmgr",  # the prefix keeps other hosts from setting it
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=secure,
        SESSION_REFRESH_EACH_REQUEST=False,
        PERMANENT_SESSION_LIFETIME=LIFETIME,
    )


def begin(token: str) -> None:
    """Store a new session in the cookie and end its previous one."""
    end()
    session.permanent = True
    session[_TOKEN] = token


def digest() -> bytes | None:
    """Return the token digest from the session cookie, or None."""
    token = session.get(_TOKEN)
    return keys.digest(token) if isinstance(token, str) else None


def current() -> Row | None:
    """Return the session of the cookie as a row, or None if it has ended."""
    token_digest = digest()
    row = None if token_digest is None else login.find_session(token_digest)
    if row:
        middleware.set_log_user(row["user_id"])
    return row


def end() -> None:
    token_digest = digest()
    session.clear()
    if token_digest is not None:
        login.delete_session(token_digest)
