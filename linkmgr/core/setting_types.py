"""Parsers of settings. They raise ValueError for an invalid text."""

import re
from collections.abc import Callable
from contextlib import suppress
from email.headerregistry import Address
from email.policy import SMTP
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import psycopg2
from limits import parse_many
from psycopg2.extensions import parse_dsn

_MMDB_MARK = b"\xab\xcd\xefMaxMind.com"  # starts the last section of an .mmdb file, at most 128 KiB long
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+")
_MAIL_PORTS = {"smtp": 587, "smtps": 465}
_MAX_REQUESTS, _MAX_WINDOW = 10**9, 86400  # of a rate limit; the window in seconds


def matching(pattern: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text, re.DOTALL):
            raise ValueError
        return text

    return parse


secret_key = matching(".{32,}")
bearer_token = matching("[A-Za-z0-9._~+/=-]{16,}")
colors = matching("#[0-9A-Fa-f]{6}(?:[ ,]+#[0-9A-Fa-f]{6})?")


def switch(text: str) -> bool:
    return bool(("0", "1").index(text))


def integer(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (re.fullmatch(r"[0-9]{1,9}", text) and minimum <= int(text) <= maximum):
            raise ValueError
        return int(text)

    return parse


def base_url(text: str) -> str:
    match = re.fullmatch(r"(https?://(?:[A-Za-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?)/?", text)
    if not match or urlsplit(text).port == 0:  # urlsplit rejects ports above 65535
        raise ValueError
    # Rejects empty labels and those of more than 63 characters
    (urlsplit(text).hostname or "").encode("idna")
    return match[1]


def database(text: str) -> str:
    if not text.startswith(("postgresql://", "postgres://")):
        raise ValueError
    try:
        parse_dsn(text)
    except psycopg2.ProgrammingError:
        raise ValueError from None
    return text


def redis(text: str) -> str:
    if not text.startswith("redis"):
        raise ValueError
    from redis.connection import parse_url  # noqa: PLC0415 - 7 MiB and 0.1 s, only with this setting

    parse_url(text.replace("redis+unix://", "unix://"))  # type: ignore[no-untyped-call]
    return text


def rate(text: str) -> str:
    [rate] = parse_many(text)
    if not 0 < rate.amount <= _MAX_REQUESTS or rate.get_expiry() > _MAX_WINDOW:
        raise ValueError
    return text


def mmdb(text: str) -> str:
    try:
        content = Path(text).read_bytes()
    except OSError:
        raise ValueError from None
    if _MMDB_MARK not in content[-128 * 1024 :]:
        raise ValueError
    return text


def networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(map(ip_network, text.replace(",", " ").split()))


def proxies(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    listed = networks(text)
    if any(network.prefixlen == 0 for network in listed):
        raise ValueError
    return listed


def words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def options(*names: str) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        chosen = words(text)
        if not {*chosen} <= {*names}:
            raise ValueError
        return chosen

    return parse


class MailServer(NamedTuple):
    """An SMTP server. `is_tls` is True if the connection begins with TLS, and `starttls` if the
    client must change to it before it signs in."""

    host: str
    port: int
    user: str
    password: str
    is_tls: bool
    starttls: bool


def mail_server(text: str) -> MailServer:
    """Parse smtp://user:password@host:port or smtps://... `?starttls=0` sends without TLS, as to a
    loopback address, where `?starttls=1` requires it."""
    url = urlsplit(text)
    host, is_tls = url.hostname or "", url.scheme == "smtps"
    query = re.fullmatch("|starttls=([01])", url.query)
    if url.scheme not in _MAIL_PORTS or not re.fullmatch(r"[A-Za-z0-9.:-]+", host) or not query:
        raise ValueError
    if url.path.strip("/") or url.fragment or url.port == 0 or (is_tls and query[1]):
        raise ValueError
    is_local = host == "localhost"
    with suppress(ValueError):
        is_local = ip_address(host).is_loopback
    user, password = unquote(url.username or ""), unquote(url.password or "")
    if not (user + password).isascii():  # smtplib sends no others
        raise ValueError
    starttls = query[1] == "1" if query[1] else not (is_tls or is_local)
    return MailServer(host, url.port or _MAIL_PORTS[url.scheme], user, password, is_tls, starttls)


def mail_address(text: str) -> Address:
    """Parse an address, perhaps with a name, that any mail server accepts."""
    try:
        header: Any = SMTP.header_factory("From", text if text.isprintable() else "")
    except IndexError:  # without a host
        raise ValueError from None
    if header.defects or len(header.addresses) != 1 or not _ADDRESS.fullmatch(header.addresses[0].addr_spec):
        raise ValueError
    address: Address = header.addresses[0]
    return address


def scopes(text: str) -> tuple[str, ...]:
    if "openid" not in words(text):
        raise ValueError
    return words(text)


def accounts(text: str) -> tuple[str, ...]:
    listed = words(text.lower())
    if listed not in (("off",), ("on",)) and not all(
        re.fullmatch(r"[a-z0-9.-]+\.[a-z0-9-]+", name) for name in listed
    ):
        raise ValueError
    return listed


def issuer(text: str) -> str:
    """Without TLS anybody on the way could send keys and tokens, unless there is no way."""
    parts = urlsplit(text)
    if parts.query or parts.fragment or not parts.hostname or not text.isprintable() or " " in text:
        raise ValueError
    is_own = parts.hostname == "localhost" or re.fullmatch(r"127\.[0-9.]+|::1", parts.hostname)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_own):
        raise ValueError
    return text.removesuffix("/")


def groups(text: str) -> tuple[tuple[str, str], ...]:
    """Parse pairs of a group and what its members get: `admin`, or `plan:` and the name of a
    plan."""
    pairs = [tuple(map(str.strip, part.rpartition("=")[::2])) for part in text.split(",")]
    if not all(group and re.fullmatch("admin|plan:.+", grant) for group, grant in pairs):
        raise ValueError
    return tuple((group, grant) for group, grant in pairs)
