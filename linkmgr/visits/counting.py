"""Decide which requests are visits, and count them. IP addresses are not stored. An error does not
affect the visitor."""

import re
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

import ua_parser
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from flask import Flask
from marshmallow import ValidationError

from linkmgr.core import metrics
from linkmgr.core.fields import languages
from linkmgr.core.fields.countries import NAMES
from linkmgr.core.fields.urls import ascii_host, is_own_host
from linkmgr.core.settings import settings, this_app
from linkmgr.core.web import request as web_request
from linkmgr.visits import bots, geoip, queue, scans
from linkmgr.visits.dimensions import CLICK, MAX_LABEL, SCAN, UNKNOWN
from linkmgr.visits.targets import device_type, pairs_of, preferred_languages

DIRECT = "Direct, email and other"
MAX_HEADER = 8190  # characters of a header that a request may have
MAX_AGENT = 512  # characters of a user agent; the rest is ignored
Environ = dict[str, Any]  # of WSGI

_HOST = re.compile(r"[a-z0-9._:-]{1,100}")
# Headers that browsers send with a prefetch, as WSGI names them.
_PREFETCH_HEADERS = ("HTTP_SEC_PURPOSE", "HTTP_PURPOSE", "HTTP_X_PURPOSE", "HTTP_X_MOZ")
_SOCIAL = {
    host: network
    for network, hosts in {
        # Apps send referrers such as android-app://com.twitter.android
        "facebook": "facebook.com fb.com fb.me fb.watch messenger.com com.facebook.katana com.facebook.orca",
        "instagram": "instagram.com ig.me instagr.am com.instagram.android",
        "twitter": "twitter.com x.com t.co com.twitter.android",
    }.items()
    for host in hosts.split()
}
_UTM = ("utm_source", "utm_medium", "utm_campaign")
_SALT_PERIODS = {"lasting": "", "monthly": " %Y-%m", "daily": " %Y-%m-%d"}  # by the setting VISITOR_SALT


@dataclass(frozen=True, slots=True)
class Visit:
    """An element of the array that repository.visits.add stores."""

    tracked_id: int
    user_id: int
    at: float  # seconds since the epoch
    visitor: str
    country: str
    referrer: str
    browser: str
    os: str
    social: str | None
    bot: bool = False
    device: str = UNKNOWN
    city: str = UNKNOWN
    language: str = UNKNOWN
    utm_source: str = UNKNOWN
    utm_medium: str = UNKNOWN
    utm_campaign: str = UNKNOWN
    variant: str = UNKNOWN
    rule: str = UNKNOWN
    kind: str = CLICK


def init_app(app: Flask) -> None:
    queue.init_app(app)


def count(
    environ: Environ,
    tracked_id: int,
    user_id: int,
    *,
    is_scan: bool = False,
    target: str = "",
    variant: str = UNKNOWN,
    rule: str = UNKNOWN,
) -> float | None:
    """Count the request as a visit, unless it is a HEAD request or a prefetch, or behind a scan
    that was counted. `target` is the URL that it leads to, `variant` the name of its variant, and
    `rule` the number of the rule that matches, from 1. Return its time, or None if it is no visit,
    the visitor is a bot, or the visit must not be recognized."""
    if not _is_visit(environ):
        return None
    try:
        kind = SCAN if is_scan or scans.is_of_own_code(environ) else CLICK
        visit = _visit(environ, tracked_id, user_id, target, kind=kind, variant=variant, rule=rule)
        if not scans.is_counted(environ, user_id):
            queue.queue_of(this_app()).add(visit)
        return None if visit.bot or not visit.visitor else visit.at
    except Exception as error:  # a bug here must not prevent the redirect
        metrics.count("visits_lost")
        this_app().logger.warning("a visit of %s was not recorded", tracked_id, exc_info=error)
        return None


def _is_visit(environ: Environ) -> bool:
    return environ["REQUEST_METHOD"] != "HEAD" and not _is_prefetch(environ)


def is_by_person(environ: Environ) -> bool:
    return _is_visit(environ) and not bots.is_bot(environ.get("HTTP_USER_AGENT", "")[:MAX_AGENT])


def _visit(environ: Environ, tracked_id: int, user_id: int, target: str, **labels: Any) -> Visit:
    agent = environ.get("HTTP_USER_AGENT", "")[:MAX_AGENT]
    private = wants_privacy(environ)
    referrer = None if private else _referrer(environ)
    address = web_request.address_of(environ)
    location = geoip.Location() if private else geoip.find_location(address)
    at = round(time.time(), 6)  # as PostgreSQL stores it, so that a click id finds the visit
    return Visit(
        tracked_id=tracked_id,
        user_id=user_id,
        at=at,
        visitor="" if private else visitor_of(tracked_id, address, agent, at),
        country=_label(location.country.name),
        referrer=referrer or DIRECT,
        social=social(referrer),
        city=_label(location.city),
        language=_language(environ.get("HTTP_ACCEPT_LANGUAGE", "")),
        **_utm(environ["QUERY_STRING"], target),
        **client(agent),
        **labels,
    )


def imported(
    tracked_id: int, user_id: int, *, at: float, agent: str, referrer: str, country: str, address: str
) -> dict[str, Any]:
    """Return a visit of an import. `country` is an ISO code, or empty. Without an IP address, it
    has no visitor."""
    agent = agent[:MAX_AGENT]
    host = host_of(referrer) if referrer else None
    return asdict(
        Visit(
            tracked_id=tracked_id,
            user_id=user_id,
            at=at,
            visitor=visitor_of(tracked_id, address, agent, at) if address else "",
            country=_label(NAMES[country][0] if country in NAMES else None),
            referrer=host or DIRECT,
            social=social(host),
            **client(agent),
        )
    )


@lru_cache(maxsize=2048)
def client(agent: str) -> dict[str, Any]:
    if bots.is_bot(agent):
        return {"browser": bots.name(agent), "os": UNKNOWN, "bot": True}
    parsed = ua_parser.parse(agent)
    system = parsed.os.family if parsed.os else ""
    browser = _label(parsed.user_agent.family if parsed.user_agent else None)
    return {"browser": browser, "os": _label(system), "device": _label(device_type(agent, system))}


def _utm(query: str, target: str) -> dict[str, Any]:
    """Return the labels of the query of the short URL, which anybody may write, or else those of
    the target."""
    if "utm_" not in query and "utm_" not in target:
        return {}
    own = target.partition("#")[0].partition("?")[2]
    sent = {name: value for name, value in (*pairs_of(own), *pairs_of(query)) if value}
    return {name: _label("".join(filter(str.isprintable, sent.get(name, ""))).strip()) for name in _UTM}


def _language(accepted: str) -> str:
    codes = (code.lower().partition("-")[0] for code in preferred_languages(accepted))
    return next((languages.NAMES[code][0] for code in codes if code in languages.NAMES), UNKNOWN)


def wants_privacy(environ: Environ) -> bool:
    return settings().respect_dnt and "1" in (environ.get("HTTP_DNT"), environ.get("HTTP_SEC_GPC"))


def _is_prefetch(environ: Environ) -> bool:
    purposes = " ".join(filter(None, map(environ.get, _PREFETCH_HEADERS))).lower()
    return "prefetch" in purposes or "preview" in purposes or "prerender" in purposes


def _label(text: str | None) -> str:
    return (text or UNKNOWN)[:MAX_LABEL]


@lru_cache(maxsize=8)
def _visitor_key(secret: str, period: str) -> bytes:
    """Return the key of visitor digests. All processes derive the same key for a period, without
    storing it."""
    info = f"linkmgr visitors{period}".encode()
    return HKDF(hashes.SHA256(), length=32, salt=None, info=info).derive(secret.encode())


def visitor_of(tracked_id: int, address: str, agent: str, at: float) -> str:
    """Return a keyed digest that is the same for all visits of a link with the same IP address
    (IPv6: /64 network) and user agent, in the period of the setting VISITOR_SALT."""
    period = time.strftime(_SALT_PERIODS[settings().visitor_salt], time.gmtime(at))
    key = _visitor_key(this_app().config["SECRET_KEY"], period)
    identity = f"{tracked_id} {web_request.network_of(address)} {agent}".encode("utf-8", "surrogatepass")
    # Seven bytes and their length are a word of the index. Among a million visitors of a link, two
    # share a digest with a probability of 1 to 140,000.
    return blake2b(identity, key=key, digest_size=7).hexdigest()


def sent_referrer(environ: Environ) -> str:
    """Return the referrer, in which WSGI has a character for each byte."""
    header = str(environ.get("HTTP_REFERER", ""))
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


def _referrer(environ: Environ) -> str | None:
    header = sent_referrer(environ)
    host = host_of(header) if header else None
    return (
        host
        if host and not is_own_host(host) and host != host_of(f"//{environ.get('HTTP_HOST', '')}")
        else None
    )


@lru_cache(maxsize=1024)
def host_of(url: str) -> str | None:
    """Return the host of a referrer, in ASCII, or None."""
    try:
        host = urlsplit(url).hostname or ""
        if not host.isascii():
            host = ascii_host(host)
    except (ValueError, ValidationError):
        return None
    return host if _HOST.fullmatch(host) else None


def social(referrer: str | None) -> str | None:
    host = referrer or ""
    return _SOCIAL.get(host) or _SOCIAL.get(".".join(host.split(".")[-2:]))
