"""Branded domains: which names may be one, and whether a name leads to this service."""

import hashlib
import hmac

from flask import current_app
from marshmallow import ValidationError

from linkmgr.fields.urls import is_address, split_http, strict_host
from linkmgr.outbound.fetch import Fetch
from linkmgr.settings import settings
from linkmgr.web import keys
from linkmgr.web.errors import AppError

CHALLENGES = "/.well-known/linkmgr/"

# Names that never mean the same to everybody.  .test and .example mean nothing, and stay for trying things out.
_RESERVED = frozenset(("localhost", "local", "internal", "invalid", "onion", "alt", "arpa", "home", "lan", "corp"))
_PROBLEMS = {
    "fetch_refused": "and only a public address can be asked",
    "fetch_unreachable": "where no web server can be reached",
    "fetch_timed_out": "where nothing answered in time",
}


def normalize(text: str) -> str:
    """The one writing of a domain: its scheme, and its name as DNS knows it."""
    parts = split_http(text)
    assert parts.hostname
    if "[" in parts.netloc:
        raise ValidationError("must hold a name, not an address")
    if ":" in parts.netloc:
        raise ValidationError("must not hold a port")
    if parts.path not in ("", "/") or "?" in text or "#" in text:
        raise ValidationError("must end with the name: without a path or a query")
    host = strict_host(parts.hostname)
    *parents, top = host.split(".")
    if is_address(host):
        raise ValidationError("must hold a name, not an address")
    if not parents or top in _RESERVED:
        raise ValidationError("must hold a name that is known all over the internet, such as go.example.com")
    if f".{host}".endswith(f".{settings().host}"):
        raise ValidationError("must not be a name of this service itself")
    return f"{parts.scheme}://{host}"


def answer(host: str, token: str) -> str:
    """What this installation alone answers to a challenge under the name `host`."""
    secret: str = current_app.config["SECRET_KEY"]
    return hmac.new(secret.encode(), f"domain challenge {host} {token}".encode(), hashlib.sha256).hexdigest()


def check(domain: str) -> None:
    """Refuses a normalised domain that does not lead here.

    The answer is bound to the name that was asked, and a redirect is followed to https alone: a foreign server
    cannot have somebody else give it.
    """
    if settings().domain_check == "off":
        return
    host, token = domain.partition("://")[2], keys.new_token()
    attempt = Fetch(f"http://{host}{CHALLENGES}{token}", upgrade_only=True)
    problem = "where something else answers"
    try:
        if hmac.compare_digest(attempt.body().strip(), answer(host, token).encode()):
            return
    except AppError as refusal:
        if refusal.code == "fetch_busy":
            raise
        problem = _PROBLEMS.get(refusal.code, problem)
    addresses = ", ".join(dict.fromkeys(attempt.addresses))
    found = f"resolves to {addresses}, {problem}" if addresses else "does not resolve to any address"
    raise AppError("domain_unproven", host=host, base_url=settings().base_url, found=found)
