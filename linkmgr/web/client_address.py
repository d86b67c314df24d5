"""Which address a request comes from, in the form that everything counts and looks up."""

import ipaddress
import re
from contextlib import suppress

from linkmgr.web.request import current

_MAX_LENGTH = 100
# Some proxies add the port that the client sent from.
_WITH_PORT = re.compile(r"\[(?P<bracketed>[^\]]*)\](?::[0-9]*)?|(?P<plain>[^:]*):[0-9]*")


def address() -> str:
    """Without port, brackets and zone; an IPv4 address that is written as IPv6 is that IPv4 address.  Proxies can
    send anything: what is no address stays as it is."""
    text = (current().remote_addr or "")[:_MAX_LENGTH]
    if ":" not in text and "[" not in text:
        return text
    found = _WITH_PORT.fullmatch(text)
    bare = (found["bracketed"] or found["plain"] or "") if found else text
    try:
        parsed = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return bare
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def network() -> str:
    """What failures are counted by: an IPv6 caller can send from any address of its /64."""
    sender = address()
    if ":" in sender:
        with suppress(ValueError):
            return str(ipaddress.IPv6Network(f"{sender}/64", strict=False))
    return sender
