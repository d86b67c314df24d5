"""Browser sessions. Flask's signed cookie contains a random token; the session itself is a row."""

import time
from datetime import timedelta

from flask import Flask, session

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.settings import settings
from linkmgr.core.web import request as web_request
from linkmgr.core.web import session_store

_TOKEN = "token"  # noqa: S105 - the name of the token in the cookie
REMOTE_USER = "remote_user"  # the name that a proxy has sent, in the cookie of its session
_PAGE = "page"  # with the time when it was asked for
_PAGE_SECONDS = 1800
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
    page = session.get(_PAGE)
    end()
    session.permanent = True
    session[_TOKEN] = token
    if page:
        session[_PAGE] = page


def remember_page(path: str) -> None:
    """Keep the page of ours that a browser asked for before it signed in, in the signed cookie."""
    session[_PAGE] = [path, int(time.time())]


def take_page() -> str | None:
    """Return the page that the browser asked for in the last half hour, once."""
    path, since = session.pop(_PAGE, ("", 0))
    return str(path) if time.time() - since < _PAGE_SECONDS else None


def digest() -> bytes | None:
    token = session.get(_TOKEN)
    return keys.digest(token) if isinstance(token, str) else None


def current() -> Row | None:
    # A cookie that another host has set or got is none of ours.
    token_digest = digest() if web_request.current().foreign_host is None else None
    row = None if token_digest is None else session_store.find_session(token_digest)
    if row:
        web_request.set_log_user(row["person_id"])
        if token_digest and row["is_idle"]:  # so that few pages write
            session_store.note_use(token_digest)
    return row


def end() -> Row | None:
    """End the session of this browser and return its row, or None if there is none."""
    token_digest = digest()
    session.clear()
    return None if token_digest is None else session_store.delete_session(token_digest)
