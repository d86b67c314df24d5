"""Browser sessions. Flask's signed cookie contains a random token; the session itself is a row."""

from datetime import timedelta

from flask import Flask, session

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.settings import settings
from linkmgr.core.web import request as web_request
from linkmgr.core.web import session_store

_TOKEN = "token"  # noqa: S105 - the name of the token in the cookie
LIFETIME = timedelta(days=30)


def init_app(app: Flask) -> None:
    secure = settings().is_https
    app.config.update(
        SESSION_COOKIE_NAME="__Host-linkmgr"
        if secure
        else "linkmgr",  # the prefix keeps other hosts from setting it
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=secure,
        SESSION_REFRESH_EACH_REQUEST=False,
        PERMANENT_SESSION_LIFETIME=LIFETIME,
    )


def begin(token: str) -> None:
    end()
    session.permanent = True
    session[_TOKEN] = token


def digest() -> bytes | None:
    token = session.get(_TOKEN)
    return keys.digest(token) if isinstance(token, str) else None


def current() -> Row | None:
    token_digest = digest()
    row = None if token_digest is None else session_store.find_session(token_digest)
    if row:
        web_request.set_log_user(row["user_id"])
    return row


def end() -> None:
    token_digest = digest()
    session.clear()
    if token_digest is not None:
        session_store.delete_session(token_digest)
