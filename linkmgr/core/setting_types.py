"""Parsers of settings. They raise ValueError for an invalid text."""

import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2
from limits import parse_many
from psycopg2.extensions import parse_dsn
from redis.connection import parse_url

_MMDB_MARK = b"\xab\xcd\xefMaxMind.com"  # starts the last section of an .mmdb file, at most 128 KiB long
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


def words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())
