"""Short URLs that clients send to name a link."""

import re
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from marshmallow import ValidationError

from linkmgr.core.fields.aliases import PATTERN, is_wide, normal
from linkmgr.core.fields.urls import is_own_host, split_ascii
from linkmgr.core.settings import settings

_ALIAS = re.compile(PATTERN, re.ASCII)
_QR_CODE = re.compile(r".*/qr?/([A-Za-z0-9_.-]{1,64})/?")


class ShortUrl(NamedTuple):
    alias: str
    host: str | None = None  # of a branded domain, None for our own host


def short_url(domain: str | None, alias: str) -> str:
    """Return the URL of a link. `domain` is a branded domain with its scheme, or None for our own
    host."""
    return f"{domain or settings().base_url}/{in_path(alias)}"


def in_path(alias: str) -> str:
    """Percent-encode the letters of an alias that a URL cannot have."""
    return alias if alias.isascii() else quote(alias, safe="/")


def parse_short_url(text: str) -> ShortUrl | None:
    """Return None if no link can have it. The scheme does not matter, and may be missing, on our
    own host also the host. Letter case matters only in the alias."""
    text = text.removesuffix("/")
    if _ALIAS.fullmatch(text):
        return ShortUrl(text)
    base = urlsplit(settings().base_url)
    try:
        parts = split_ascii(text if "://" in text else f"{base.scheme}://{text}")
    except ValidationError:
        return None
    alias, is_own = normal(unquote(parts.path[1:])), is_own_host(parts.hostname or "")
    can_be_wide = not is_own or "widealiases" in settings().aliases
    if parts.query or parts.fragment or not (_ALIAS.fullmatch(alias) or (can_be_wide and is_wide(alias))):
        return None
    is_served = _port(parts) == (_port(base) if is_own else None)
    return ShortUrl(alias, None if is_own else parts.hostname) if is_served else None


def _port(parts: SplitResult) -> int | None:
    return None if parts.port in (80, 443) else parts.port


def parse_item_url(text: str) -> dict[str, str | None]:
    code, short = _QR_CODE.fullmatch(text), parse_short_url(text)
    return {
        "code": code[1] if code else "",
        "host": short.host if short else None,
        "alias": short.alias if short else "",
    }
