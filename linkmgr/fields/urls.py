"""Addresses that users send: one strict reading and one writing of each."""

import ipaddress
import re
import socket
import unicodedata
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

import idna
from marshmallow import ValidationError
from werkzeug.urls import iri_to_uri

from linkmgr.settings import settings

MAX_URL = 2048
_LABEL = re.compile(r"[a-z0-9_-]{1,63}", re.ASCII)
_MAX_HOST = 253
_JOINERS = "\u200c\u200d"
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HOST_HEADER = re.compile(r"(?:\[(?P<ipv6>[0-9a-f:.]{2,45})\]|(?P<name>[a-z0-9.-]{1,253}?)\.?)(?::[0-9]*)?", re.ASCII)

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def split_http(text: str) -> SplitResult:
    """The parts of an absolute http or https URL with a host; urlsplit alone lets far more through."""
    if len(text) > MAX_URL:
        raise ValidationError(f"must be at most {MAX_URL} characters")
    # urlsplit strips some of these silently, and browsers read a backslash as a slash.
    if re.search(r"[\x00-\x20\x7f\\]|\s", text):
        raise ValidationError("must not hold spaces, control characters or backslashes")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValidationError("must be a URL") from None
    if port == 0:
        raise ValidationError("must have a port from 1 to 65535")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValidationError("must be a URL that begins with http:// or https://")
    if "@" in parts.netloc:
        raise ValidationError("must not hold a user name or a password")
    return parts


def strict_host(host: str) -> str:
    """Return a name that can be registered, in ASCII."""
    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode().lower().removesuffix(".")
    except (idna.IDNAError, UnicodeError):
        raise ValidationError("must hold a valid host name") from None


@lru_cache(maxsize=1024)  # links of one user lead to few sites
def ascii_host(host: str) -> str:
    """Return a host name in ASCII, as browsers look it up.

    Like the URL standard of browsers this allows emoji, underscores and hyphens anywhere. Unlike it, this allows no
    other ASCII characters, which could end the host where it is part of a header or a page.
    """
    try:
        labels = idna.uts46_remap(host, std3_rules=False).removesuffix(".").split(".")
        decoded = [_unicode_label(label) for label in labels]
        if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for label in decoded for character in label):
            for label in decoded:
                idna.check_bidi(label, check_ltr=True)
        name = ".".join(label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in decoded)
    except (idna.IDNAError, UnicodeError):
        raise ValidationError("must hold a valid host name") from None
    if len(name) > _MAX_HOST or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValidationError("must hold a valid host name")
    return name


def _unicode_label(label: str) -> str:
    """Return the label decoded, if UTS #46 allows it."""
    if label.startswith("xn--"):
        encoded, label = label, label.removeprefix("xn--").encode("ascii").decode("punycode")
        if idna.uts46_remap(label, std3_rules=False) != label or f"xn--{label.encode('punycode').decode()}" != encoded:
            raise idna.IDNAError("not the one encoding of a label")
        if label.isascii():
            raise idna.IDNAError("encoded for nothing")
    if label and not label.isascii():
        idna.check_initial_combiner(label)
        if not all(idna.valid_contextj(label, n) for n, character in enumerate(label) if character in _JOINERS):
            raise idna.IDNAError("a joiner that joins nothing")
    return label


def is_address(host: str) -> bool:
    """Whether browsers read an ASCII host as an IPv4 address, in any of its writings: it ends with a number."""
    return bool(_NUMBER.fullmatch(host.rpartition(".")[2]))


def _is_canonical(host: str) -> bool:
    try:
        return str(ipaddress.ip_address(host)) == host
    except ValueError:
        return False


def _address(host: str) -> str | None:
    """An address in the one writing that URLs have for it."""
    if not (":" in host or is_address(host)):
        return None
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    written = str(getattr(address, "ipv4_mapped", None) or address)
    return f"[{written}]" if ":" in written else written


def _ip(host: str) -> IPAddress | None:
    """Return the IP address that an ASCII host stands for in any notation, or None for a name."""
    try:
        if ":" in host:
            address = ipaddress.IPv6Address(host)
            return address.ipv4_mapped or address
        return ipaddress.IPv4Address(socket.inet_aton(host)) if is_address(host) else None
    except (ValueError, OSError):
        return None


def is_loopback(host: str) -> bool:
    """Return True if the host always means this machine. Connections to 0.0.0.0 and [::] arrive there too."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _ip(host)
    return address is not None and (address.is_loopback or address.is_unspecified)


def is_own_host(host: str) -> bool:
    """Return True for the host of LINKMGR_BASE_URL and, unless that is public, for every loopback name."""
    own = settings().host
    if host == own:
        return True
    if is_loopback(host):
        return settings().serve_loopback == "1" or is_loopback(own)
    address = _ip(host)
    return address is not None and address == _ip(own)


def requested_host(header: str) -> str:
    """Return the name or IP address in a Host header, or "" if there is none. Ports do not matter."""
    match = _HOST_HEADER.fullmatch(header.lower())
    return (match["ipv6"] or match["name"]) if match else ""


def split_ascii(text: str) -> SplitResult:
    """The parts of an http or https URL, in ASCII throughout."""
    parts = split_http(text)
    assert parts.hostname
    host = _address(parts.hostname) or ascii_host(parts.hostname)
    netloc = f"{host}:{parts.port}" if parts.port else host
    uri = iri_to_uri(parts._replace(netloc=netloc).geturl())
    if len(uri) > MAX_URL:  # each character that is not ASCII has become up to twelve
        raise ValidationError(f"must be at most {MAX_URL} characters in its ASCII form")
    return urlsplit(uri)


def normalize_target(text: str) -> str:
    """The one writing of a URL that a visitor is sent to: ASCII throughout, and not an address of ours, which
    could send the visitor in a circle."""
    parts = split_ascii(text)
    assert parts.hostname
    if is_address(parts.hostname) and not _is_canonical(parts.hostname):
        raise ValidationError("must hold a name, or an address as four numbers")
    if is_own_host(parts.hostname):
        raise ValidationError("must not lead back to this service")
    return parts.geturl()
