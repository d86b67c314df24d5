"""What browsers are told about every answer, and the check that a form was sent by a page of ours."""

import ipaddress
import secrets
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, request

from linkmgr.settings import settings
from linkmgr.web import request as web_request
from linkmgr.web.errors import AppError

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_NONCE = "linkmgr.nonce"  # key of the WSGI environment


def nonce() -> str:
    """Lets the script elements of this answer that carry it run; all others do not."""
    return str(request.environ.setdefault(_NONCE, secrets.token_urlsafe(16)))


def fixed_headers() -> list[tuple[str, str]]:
    """Those that stand on every answer of the service."""
    headers = [("X-Content-Type-Options", "nosniff")]
    if settings().base_url.startswith("https://"):
        headers.append(("Strict-Transport-Security", "max-age=31536000"))
    return headers


def policy(environ: dict[str, Any]) -> tuple[str, str]:
    """The header of a page that has none of its own."""
    scripts = f"; script-src 'nonce-{environ[_NONCE]}'" if _NONCE in environ else ""
    return "Content-Security-Policy", POLICY + scripts


def keep_private(response: Response) -> Response:
    """For the answers of a blueprint that are for one person only."""
    response.headers["Cache-Control"] = "no-store"
    # With "no-referrer" a browser sends `Origin: null` with our own forms.  Where it sends no Sec-Fetch-Site
    # either, which is over plain HTTP, they could not be told from foreign ones.
    response.headers["Referrer-Policy"] = "no-referrer" if _tells_the_site() else "same-origin"
    return response


def _tells_the_site() -> bool:
    """Whether browsers send Sec-Fetch-Site to our address."""
    base = urlsplit(settings().base_url)
    with suppress(ValueError):
        return base.scheme == "https" or ipaddress.ip_address(base.hostname or "").is_loopback
    return base.hostname == "localhost"


def _check_origin() -> None:
    """A form of a page must be sent by a page of ours.  A browser says where a POST comes from; a client that
    says nothing is none, and has nobody's cookie that could be abused."""
    request = web_request.current()
    if request.method in ("GET", "HEAD", "OPTIONS") or request.is_api:
        return
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        ours = site in ("same-origin", "none")
    else:
        ours = origin is None or origin == settings().base_url or origin == f"{request.scheme}://{request.host}"
    if not ours:
        raise AppError("foreign_origin")


def init_app(app: Flask) -> None:
    app.before_request(_check_origin)
    app.add_template_global(nonce)
