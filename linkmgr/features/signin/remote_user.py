"""The name of the user that an authenticating proxy sends in a header."""

from contextlib import suppress
from ipaddress import ip_address, ip_network

import psycopg2
from flask import request

from linkmgr.core.errors import AppError
from linkmgr.core.settings import settings
from linkmgr.core.web import request as web_request
from linkmgr.core.web import session_store
from linkmgr.features.signin import accounts

_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


def _is_from_proxy() -> bool:
    """Return True if the peer of the connection is a proxy: not the client that X-Forwarded-For
    names, which ProxyFix puts in its place. A Unix socket has no address, and only proxies can open
    it."""
    environ = request.environ.get("werkzeug.proxy_fix.orig", request.environ)
    with suppress(ValueError):
        networks = settings().remote_user_proxies or _LOOPBACK
        peer = environ["REMOTE_ADDR"] and ip_address(web_request.address_of(environ))
        return not peer or any(peer in network for network in networks)
    return False


def name() -> str:
    """Return the name in the header, or "" if there is none or if it is not from a proxy."""
    if not _is_from_proxy():
        return ""
    with suppress(UnicodeError):
        sent = request.headers.get(settings().remote_user_header, "").encode("latin-1").decode().strip()
        return sent if sent.isprintable() else ""
    return ""


def user(name: str) -> int:
    """Return the user with this name or e-mail address, or a new one with this e-mail address."""
    if user_id := session_store.find_credentials(name)["id"]:
        return int(user_id)
    if "@" in name and accounts.is_welcome(name, is_verified=True):
        try:
            return accounts.add(name, name)
        except (AppError, psycopg2.IntegrityError):
            # Another request may just have added the user.
            if user_id := session_store.find_credentials(name)["id"]:
                return int(user_id)
            raise
    raise AppError("account_none", name="The proxy")
