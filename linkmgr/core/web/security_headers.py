import ipaddress
import secrets
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, request

from linkmgr.core.settings import settings

_SOURCES = {
    "default-src": "'none'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
_NONCE = "linkmgr.nonce"  # key of the WSGI environment


def written(**changed: str) -> str:
    sources = _SOURCES | {name.replace("_", "-"): text for name, text in changed.items()}
    return "; ".join(f"{name} {text}" for name, text in sources.items())


POLICY = written()


def nonce() -> str:
    return str(request.environ.setdefault(_NONCE, secrets.token_urlsafe(16)))


def fixed_headers() -> list[tuple[str, str]]:
    headers = [("X-Content-Type-Options", "nosniff")]
    if settings().is_https:
        headers.append(("Strict-Transport-Security", "max-age=31536000"))
    return headers


def policy(environ: dict[str, Any]) -> tuple[str, str]:
    scripts = f"; script-src 'nonce-{environ[_NONCE]}'" if _NONCE in environ else ""
    return "Content-Security-Policy", POLICY + scripts


def prevent_caching(response: Response) -> Response:
    """Let every visit reach the service, so that it is counted and gets the current target."""
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def keep_private(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    # With "no-referrer", browsers send `Origin: null` with our own forms. Over plain HTTP they send
    # no Sec-Fetch-Site either, so that the origin check would reject these forms.
    response.headers["Referrer-Policy"] = "no-referrer" if _has_fetch_metadata() else "same-origin"
    return response


def _has_fetch_metadata() -> bool:
    """Return True if browsers send Sec-Fetch-Site to our URL: it is HTTPS or a loopback address."""
    base = urlsplit(settings().base_url)
    with suppress(ValueError):
        return base.scheme == "https" or ipaddress.ip_address(base.hostname or "").is_loopback
    return base.hostname == "localhost"


def init_app(app: Flask) -> None:
    app.add_template_global(nonce)
