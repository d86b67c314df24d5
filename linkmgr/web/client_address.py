"""Client IP address in canonical form."""

import ipaddress
import re
from contextlib import suppress
from typing import Any

from linkmgr.web.request import current

_MAX_LENGTH = 100
# Some proxies append the client's port.
_WITH_PORT = re.compile(r"\[(?P<bracketed>[^\]]*)\](?::[0-9]*)?|(?P<plain>[^:]*):[0-9]*")


def address() -> str:
    return address_of(current().environ)


def address_of(environ: dict[str, Any]) -> str:
    """Return the client's IP address without port, brackets and zone, and an IPv4-mapped IPv6 address as IPv4.

    Proxies can send any text. Text that is not an IP address is returned unchanged.
    """
    text: str = environ.get("REMOTE_ADDR", "")[:_MAX_LENGTH]
    if ":" not in text and "[" not in text:
        return text
    match = _WITH_PORT.fullmatch(text)
    host = (match["bracketed"] or match["plain"] or "") if match else text
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return str(getattr(ip, "ipv4_mapped", None) or ip)


def network() -> str:
    return network_of(address())


def network_of(address: str) -> str:
    """Return the network that requests, failures and visitors are counted by: an IPv4 address or an IPv6 /64.

    An IPv6 client can send from any address of its /64, and most change theirs each day.
    """
    if ":" in address:
        with suppress(ValueError):
            return str(ipaddress.IPv6Network(f"{address}/64", strict=False))
    return address
