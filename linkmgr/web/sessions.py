"""Signed-in browsers.  Flask's signed cookie carries a random token; the session itself is a row."""

from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from flask import Flask, Request, Response, session
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin

from linkmgr.db.statements import Row
from linkmgr.settings import settings, this_app
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


class Store(NamedTuple):
    """The queries on stored sessions. Both take the digest of the session's token."""

    find: Callable[[bytes], Row | None]
    end: Callable[[bytes], None]


def _store() -> Store:
    store: Store = this_app().extensions["linkmgr_sessions"]
    return store


def init_app(app: Flask, store: Store) -> None:
    app.extensions["linkmgr_sessions"] = store
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
    found = None if named is None else _store().find(named)
    if found:
        middleware.log_user(found["user_id"])
    return found


def end() -> None:
    named = digest()
    session.clear()
    if named is not None:
        _store().end(named)
