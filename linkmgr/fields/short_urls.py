"""Short URLs that clients send to name a link."""

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from marshmallow import ValidationError

from linkmgr.fields.aliases import PATTERN
from linkmgr.fields.urls import is_own_host, split_ascii
from linkmgr.settings import settings

_ALIAS = re.compile(PATTERN, re.ASCII)
_QR_CODE = re.compile(r".*/qr?/([A-Za-z0-9_.-]{1,64})/?")
_PORTS = {"http": 80, "https": 443}


class ShortUrl(NamedTuple):
    alias: str
    host: str | None = None  # of a branded domain, None for our own host
    scheme: str | None = None  # None if it was not sent


def short_url(domain: str | None, alias: str) -> str:
    """Return the URL of a link. `domain` is a branded domain with its scheme, or None for our own host."""
    return f"{domain or settings().base_url}/{alias}"


def parse_short_url(text: str) -> ShortUrl | None:
    """Return the parts of a short URL, or None if no link can have it.

    The scheme may be missing, and on our own host also the host. Letter case matters only in the alias.
    """
    text = text.removesuffix("/")
    if _ALIAS.fullmatch(text):
        return ShortUrl(text)
    base = urlsplit(settings().base_url)
    has_scheme = "://" in text
    try:
        parts = split_ascii(text if has_scheme else f"{base.scheme}://{text}")
    except ValidationError:
        return None
    alias, is_own = parts.path[1:], is_own_host(parts.hostname or "")
    if parts.query or parts.fragment or not _ALIAS.fullmatch(alias):
        return None
    if is_own and parts.scheme != base.scheme:
        return None
    scheme = parts.scheme if has_scheme else None
    if is_own:
        is_served = (parts.port or _PORTS[base.scheme]) == (base.port or _PORTS[base.scheme])
    else:  # a branded domain is served on the port of its scheme, which the port can name
        scheme = scheme or next((name for name, port in _PORTS.items() if port == parts.port), None)
        is_served = parts.port is None or parts.port == _PORTS.get(scheme or "")
    return ShortUrl(alias, None if is_own else parts.hostname, scheme) if is_served else None


def parse_item_url(text: str) -> dict[str, str | None]:
    """Return the `code` in the URL of a QR code, and the `host` and the `alias` of a short URL, or empty values."""
    code, short = _QR_CODE.fullmatch(text), parse_short_url(text)
    return {
        "code": code[1] if code else "",
        "host": short.host if short else None,
        "alias": short.alias if short else "",
    }
