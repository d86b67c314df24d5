"""Decide which requests are visits, and record them.

IP addresses are not stored. An error here does not affect the visitor.
"""

import re
import time
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import urlsplit

import ua_parser
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from flask import Flask, current_app, request

from linkmgr.fields.urls import is_own_host
from linkmgr.settings import this_app
from linkmgr.visits import bots, geoip
from linkmgr.visits.queue import Visit, VisitQueue
from linkmgr.web import client_address, metrics

UNKNOWN = "Unknown"
DIRECT = "Direct, email and other"
MAX_LABEL = 100
MAX_AGENT = 512  # characters of a user agent; the rest is ignored
_HOST = re.compile(r"[a-z0-9._:-]{1,100}")
# Headers that browsers send with a prefetch, as WSGI names them.
_PREFETCH_HEADERS = ("HTTP_SEC_PURPOSE", "HTTP_PURPOSE", "HTTP_X_PURPOSE", "HTTP_X_MOZ")
_SOCIAL = {
    "facebook.com": "facebook",
    "fb.com": "facebook",
    "fb.me": "facebook",
    "messenger.com": "facebook",
    "twitter.com": "twitter",
    "x.com": "twitter",
    "t.co": "twitter",
    "instagram.com": "instagram",
    "ig.me": "instagram",
    "instagr.am": "instagram",
    "fb.watch": "facebook",
    # Apps send referrers such as android-app://com.twitter.android
    "com.facebook.katana": "facebook",
    "com.facebook.orca": "facebook",
    "com.instagram.android": "instagram",
    "com.twitter.android": "twitter",
}


def init_app(app: Flask) -> None:
    secret = app.config["SECRET_KEY"].encode()
    derived = HKDF(hashes.SHA256(), length=32, salt=None, info=b"linkmgr visitors").derive(secret)
    app.extensions["linkmgr_visitors"] = derived
    app.extensions["linkmgr_visit_queue"] = VisitQueue(app)


def record(target_id: int, user_id: int) -> None:
    """Record the request as a visit of the user's target, unless it is a HEAD request, a prefetch or from a bot."""
    agent = request.headers.get("User-Agent", "")[:MAX_AGENT]
    if request.method == "HEAD" or _is_prefetch():
        return
    try:
        client = _client(agent)
        if client is None:
            return
        referrer = _referrer()
        queue: VisitQueue = this_app().extensions["linkmgr_visit_queue"]
        queue.add(
            Visit(
                target_id=target_id,
                user_id=user_id,
                at=time.time(),
                visitor=_visitor(target_id, agent),
                country=_label(geoip.find_country(client_address.address()).name),
                referrer=referrer or DIRECT,
                browser=client.browser,
                os=client.os,
                social=_social(referrer),
            )
        )
    except Exception as error:  # a bug here must not prevent the redirect
        metrics.count("visits_lost")
        current_app.logger.warning("a visit of %s was not recorded", target_id, exc_info=error)


class _Client(NamedTuple):
    browser: str
    os: str


@lru_cache(maxsize=2048)
def _client(agent: str) -> _Client | None:
    """Return the visitor's browser and operating system, or None for a bot."""
    if bots.is_bot(agent):
        return None
    parsed = ua_parser.parse(agent)
    return _Client(
        _label(parsed.user_agent.family if parsed.user_agent else None),
        _label(parsed.os.family if parsed.os else None),
    )


def _is_prefetch() -> bool:
    purposes = " ".join(filter(None, map(request.environ.get, _PREFETCH_HEADERS))).lower()
    return "prefetch" in purposes or "preview" in purposes or "prerender" in purposes


def _label(text: str | None) -> str:
    return (text or UNKNOWN)[:MAX_LABEL]


def _visitor(target_id: int, agent: str) -> str:
    """Return a keyed digest that is the same for all visits of a target with the same IP address and user agent."""
    identity = f"{target_id} {client_address.address()} {agent}".encode("utf-8", "surrogatepass")
    return blake2b(identity, key=this_app().extensions["linkmgr_visitors"], digest_size=16).hexdigest()


def _referrer() -> str | None:
    """Return the host of the referrer, or None if it is our own or there is none."""
    header = request.environ.get("HTTP_REFERER")
    host = _host(header) if header else None
    return host if host and not is_own_host(host) and host != _host(f"//{request.host}") else None


@lru_cache(maxsize=1024)
def _host(url: str) -> str | None:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return None
    return host if _HOST.fullmatch(host) else None


def _social(referrer: str | None) -> str | None:
    """Return the social network of the host or of its parent domain, as of l.facebook.com, or None."""
    host = referrer or ""
    return _SOCIAL.get(host) or _SOCIAL.get(".".join(host.split(".")[-2:]))
