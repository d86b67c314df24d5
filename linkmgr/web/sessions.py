"""Signed-in browsers.  Flask's signed cookie carries a random token; the session itself is a row."""

from datetime import timedelta

from flask import Flask, Request, Response, session
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin

from linkmgr.db.statements import Row
from linkmgr.repository import login
from linkmgr.settings import settings
from linkmgr.web import keys, middleware

_TOKEN = "token"  # noqa: S105 - the name of it
LIFETIME = timedelta(days=30)


class _Interface(SecureCookieSessionInterface):
    """Flask's own derives the keys of the signature for each request, and the cookie's attributes for each answer,
    those without a cookie too."""

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
    """Puts a new session into the cookie, and ends the one that it named before."""
    end()
    session.permanent = True
    session[_TOKEN] = token


def digest() -> bytes | None:
    """Of the session that the cookie names."""
    token = session.get(_TOKEN)
    return keys.digest(token) if isinstance(token, str) else None


def current() -> Row | None:
    named = digest()
    found = None if named is None else login.signed_in(named)
    if found:
        middleware.called_by(found["user_id"])
    return found


def end() -> None:
    named = digest()
    session.clear()
    if named is not None:
        login.end(named)
