"""Branded domains: the check that a domain points to this service."""

import hashlib
import hmac
import ipaddress
from contextlib import suppress

from flask import current_app

from linkmgr.core import keys
from linkmgr.core.errors import AppError
from linkmgr.core.outbound.fetch import Fetch
from linkmgr.core.settings import settings

CHALLENGE_PATH = "/.well-known/linkmgr/"

_PROBLEMS = {
    "fetch_refused": "which is not public",
    "fetch_unreachable": "where no web server could be reached",
    "fetch_timed_out": "where no web server responded in time",
}


def challenge_response(host: str, token: str) -> str:
    secret: str = current_app.config["SECRET_KEY"]
    return hmac.new(secret.encode(), f"domain challenge {host} {token}".encode(), hashlib.sha256).hexdigest()


def check(domain: str) -> bool:
    """Raise an error unless a normalized domain points to this service. Return False if the check
    is off.

    The response depends on the host, and only a redirect to https on the same host is followed.
    Another server therefore cannot redirect the request to one that responds correctly.
    """
    if settings().domain_check == "off":
        return False
    host, token = domain.partition("://")[2], keys.new_token()
    request = Fetch(f"http://{host}{CHALLENGE_PATH}{token}", upgrade_only=True)
    problem = "where another server responded"
    try:
        if hmac.compare_digest(request.body().strip(), challenge_response(host, token).encode()):
            return True
    except AppError as error:
        if error.code == "fetch_busy":
            raise
        problem = _PROBLEMS.get(error.code, problem)
    addresses = ", ".join(dict.fromkeys(request.addresses))
    result = f"resolves to {addresses}, {problem}" if addresses else "does not resolve to an IP address"
    raise AppError("domain_unproven", host=host, base_url=settings().base_url, found=result)


def dns_record(host: str) -> tuple[str, str, str]:
    own = settings().host
    with suppress(ValueError):
        return "A" if ipaddress.ip_address(own).version == 4 else "AAAA", host, own  # noqa: PLR2004
    # A domain itself cannot have a CNAME record
    return ("ALIAS" if host.count(".") == 1 else "CNAME", host, f"{own}.")
