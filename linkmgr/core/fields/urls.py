"""Strict parsing and normalization of URLs and host names."""

import ipaddress
import re
import socket
import unicodedata
from contextlib import suppress
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

import idna
from ada_url import idna_to_ascii, idna_to_unicode
from marshmallow import ValidationError
from werkzeug.urls import iri_to_uri

from linkmgr.core.settings import settings

MAX_URL = 2048
_MAX_HOST = 253
_LABEL = re.compile("[a-z0-9_-]{1,63}", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# Perhaps a loopback name or an IP address
_LOCAL = re.compile(rf":|(?:^|\.)(?:localhost|{_NUMBER.pattern})\Z")
# Most URLs: a host of lower-case ASCII without a port, and only characters that iri_to_uri() keeps.
_KEPT = r"[A-Za-z0-9_.~%!$&'()*+,/:;=@-]"
_CANONICAL = re.compile(
    rf"https?://([a-z][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)+)(?:/{_KEPT}*(?:\?{_KEPT}+)?)?", re.ASCII
)
ENCODED = re.compile(r"\bxn--[a-z0-9-]+")  # a label of a host name
_JAPANESE = frozenset(("CJK", "HIRAGANA", "KATAKANA"))  # scripts of one language, by the names of letters
_WITH_LATIN = [  # scripts that people write together, and that do not look alike
    {"LATIN", "CJK", "IDEOGRAPHIC", *scripts} for scripts in (_JAPANESE, {"BOPOMOFO"}, {"HANGUL"})
]
_LIKE_LATIN = frozenset("асԁеһіјӏорԛѕԝхуъҽпгѵѡαικνρυωηοτχ")  # Cyrillic and Greek
_HOST_HEADER = re.compile(
    r"(?:\[(?P<ipv6>[0-9a-f:.]{2,45})\]|(?P<name>[a-z0-9.-]{1,253}?)\.?)(?::[0-9]*)?", re.ASCII
)

# Top-level names that are not public. .test and .example are allowed for experiments.
_RESERVED = frozenset(
    ("localhost", "local", "internal", "invalid", "onion", "alt", "arpa", "home", "lan", "corp")
)

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def split_http(text: str) -> SplitResult:
    """Return the parts of an absolute http or https URL with a host. urlsplit alone accepts far
    more."""
    if len(text) > MAX_URL:
        raise ValidationError(f"must be at most {MAX_URL} characters")
    # urlsplit strips some of these silently. Before a query, browsers read a backslash as a slash.
    if re.search(r"[\x00-\x20\x7f]|\s|^[^?#]*\\", text):
        raise ValidationError("must not contain spaces, control characters or backslashes")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValidationError("must be a valid URL") from None
    if port == 0:
        raise ValidationError("must have a port from 1 to 65535")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValidationError("must be a URL that begins with http:// or https://")
    if "@" in parts.netloc:
        raise ValidationError("must not contain a user name or password")
    return parts


def strict_host(host: str) -> str:
    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode().lower().removesuffix(".")
    except ValueError:
        raise ValidationError("must contain a valid host name") from None


@lru_cache(maxsize=1024)  # the links of a user have few hosts
def ascii_host(host: str) -> str:
    """Return a host name in ASCII, as browsers resolve it.

    Like the URL standard, this allows emoji, underscores and hyphens anywhere. Unlike the standard,
    it allows no other ASCII characters, which could end the host inside a header or a page, and no
    label that only looks like an encoded one. Encoding takes time by the square of the length.
    """
    try:
        name = idna_to_ascii(host).decode().removesuffix(".") if len(host) <= _MAX_HOST + len(".") else ""
    except UnicodeError:
        name = ""
    if len(name) > _MAX_HOST or not all(map(_is_label, name.split("."))):
        raise ValidationError("must contain a valid host name")
    return name


@lru_cache(maxsize=1024)
def readable_label(label: str) -> str:
    """Return a label of a host name, `xn--...`, in Unicode, or as it is if it may look like another
    one: it is not valid in IDNA 2008, has letters of several scripts, or only letters like Latin
    ones."""
    try:
        name = idna.decode(label)
        letters = {char for char in name if char.isalpha()}
        scripts = {re.split("[ -]", unicodedata.name(char))[0] for char in letters}
        is_exact = idna.encode(name).decode() == label
    except ValueError:  # also of a letter without a name, and of a label that is too long
        return label
    is_one = len(scripts) == 1 or scripts <= _JAPANESE
    return name if is_exact and is_one and not letters <= _LIKE_LATIN else label


def has_lookalikes(text: str) -> bool:
    """Return True if a text may look like another one: its letters are of scripts that are not
    written together, or only letters like Latin ones."""
    letters = {char for char in text if char.isalpha()}
    try:
        scripts = {re.split("[ -]", unicodedata.name(char))[0] for char in letters}
    except ValueError:  # a letter without a name
        return True
    is_one = len(scripts) <= 1 or any(scripts <= together for together in _WITH_LATIN)
    return not is_one or bool(letters and letters <= _LIKE_LATIN)


def readable(url: str) -> str:
    """Return a URL as people write it: without its scheme and `www.`, and with its host name in
    Unicode."""
    host, slash, path = url.rpartition("://")[2].partition("/")
    host = ENCODED.sub(lambda label: readable_label(label[0]), host.removeprefix("www."))
    return f"{host}{slash}{path}".removesuffix("/")


def ascii_text(text: str) -> str:
    """Return a readable URL, or the beginning of one, as targets are stored."""
    scheme, mark, rest = text.rpartition("://")
    host, slash, path = rest.partition("/")
    with suppress(UnicodeError):
        host = idna_to_ascii(host).decode() or host
    return f"{scheme}{mark}{host}{slash}{iri_to_uri(path)}"


def link_name(title: str | None, target: str) -> str:
    """Return the name of a link: its `link_title` (schema.sql), or else the host and path of its
    target."""
    return title or readable(re.split("[?#]", target)[0])


def _is_label(label: str) -> bool:
    if not label.startswith("xn--"):
        return bool(_LABEL.fullmatch(label))
    name = idna_to_unicode(label)  # the label if it cannot be decoded
    return bool(_LABEL.fullmatch(label)) and name != label and idna_to_ascii(name).decode() == label


def is_ipv4(host: str) -> bool:
    """Return True if browsers parse the host as an IPv4 address: its last label is a number."""
    return bool(_NUMBER.fullmatch(host.rpartition(".")[2]))


def _canonical_ip(host: str) -> str | None:
    if not (":" in host or is_ipv4(host)):
        return None
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    text = str(getattr(address, "ipv4_mapped", None) or address)
    return f"[{text}]" if ":" in text else text


def parse_ip(host: str) -> IPAddress | None:
    try:
        if ":" in host:
            address = ipaddress.IPv6Address(host)
            return address.ipv4_mapped or address
        return ipaddress.IPv4Address(socket.inet_aton(host)) if is_ipv4(host) else None
    except (ValueError, OSError):
        return None


def is_loopback(host: str) -> bool:
    """Return True if the host is always this machine. Connections to 0.0.0.0 and [::] reach it
    too."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = parse_ip(host)
    return address is not None and (address.is_loopback or address.is_unspecified)


def is_own_host(host: str) -> bool:
    """Return True for the host of LINKMGR_BASE_URL and, unless that is public, for every loopback
    name."""
    own = settings().host
    if host == own:
        return True
    if not _LOCAL.search(host):
        return False
    if is_loopback(host):
        return settings().serve_loopback or is_loopback(own)
    address = parse_ip(host)
    return address is not None and address == parse_ip(own)


def requested_host(header: str) -> str:
    match = _HOST_HEADER.fullmatch(header.lower())
    return (match["ipv6"] or match["name"]) if match else ""


def split_ascii(text: str) -> SplitResult:
    parts = split_http(text)
    name, port = parts.hostname, parts.port  # SplitResult parses them on each access
    assert name
    host = _canonical_ip(name) or ascii_host(name)
    netloc = f"{host}:{port}" if port else host
    uri = iri_to_uri(parts._replace(netloc=netloc).geturl())
    if len(uri) > MAX_URL:  # a character becomes up to twelve
        raise ValidationError(f"must be at most {MAX_URL} characters in its ASCII form")
    return urlsplit(uri)


def normalize_target(text: str) -> str:
    """Return the URL of a redirect target in ASCII. URLs of this service could cause redirect
    loops."""
    match = _CANONICAL.fullmatch(text)
    if match and len(text) <= MAX_URL and ascii_host(match[1]) == match[1] and not is_own_host(match[1]):
        return text  # as the lines below would, in a fifth of the time
    parts = split_ascii(text)
    host = parts.hostname
    assert host
    if is_ipv4(host) and not _canonical_ip(host):
        raise ValidationError("must contain a host name, or an IPv4 address such as 192.0.2.1")
    if is_own_host(host):
        raise ValidationError("must not point to this service")
    return parts.geturl()


def normalize_domain(text: str) -> str:
    parts = split_http(text)
    assert parts.hostname
    if "[" in parts.netloc:
        raise ValidationError("must contain a host name, not an IP address")
    if ":" in parts.netloc:
        raise ValidationError("must not contain a port")
    if parts.path not in ("", "/") or "?" in text or "#" in text:
        raise ValidationError("must not contain a path, query or fragment")
    host = strict_host(parts.hostname)
    *parents, top = host.split(".")
    if is_ipv4(host):
        raise ValidationError("must contain a host name, not an IP address")
    if not parents or top in _RESERVED:
        raise ValidationError("must contain a public host name such as go.example.com")
    if f".{host}".endswith(f".{settings().host}"):
        raise ValidationError("must not be the host of this service or a subdomain of it")
    return f"{parts.scheme}://{host}"
