"""The IP addresses that a batch of checks requests: under many names, a server is still one."""

import math
import threading
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

import pycurl

from linkmgr.core.outbound.fetch import Networks, Transfer
from linkmgr.core.web.request import network_of


class Addresses:
    """Each gets one request at a time, a number of seconds after the last one. The /64 of an IPv6
    address is one."""

    def __init__(self, spacing: float) -> None:
        self._spacing = spacing
        self._free = dict[str, float]()  # time.monotonic() from which one is free
        self._given_back = threading.Condition()

    def take(self, address: str, end: float = -math.inf) -> bool:
        """Return True if it is free now, or before the end, by time.monotonic()."""
        with self._given_back:
            while (free := self._free.get(address, 0)) > (now := time.monotonic()):
                if now > end:
                    return False
                self._given_back.wait(min(free, end) - now)
            self._free[address] = math.inf
            return True

    def give_back(self, addresses: Iterable[str]) -> None:
        with self._given_back:
            self._free |= dict.fromkeys(addresses, time.monotonic() + self._spacing)
            self._given_back.notify_all()


class SpacedTransfer(Transfer):
    """A request to addresses that are held, and to others that are free, which are held then.
    `busy` is one that is not free."""

    def __init__(self, networks: Networks, addresses: Addresses, held: set[str]) -> None:
        super().__init__(networks)
        self._all, self._held, self.busy = addresses, held, ""

    def may_connect(self, address: str) -> bool:
        key = _key(address)
        if key in self._held or self._all.take(key):
            self._held.add(key)
            return True
        self.busy = key
        return False


class _Lookup(Transfer):
    def may_connect(self, _address: str) -> bool:
        return False


def _key(address: str) -> str:
    ip = ip_address(address.partition("%")[0])
    return network_of(str(getattr(ip, "ipv4_mapped", None) or ip))


def locate(url: str, seconds: int) -> str:
    """Return the address of a URL without a request, or its host if it is not known in time."""
    lookup = _Lookup()
    with closing(lookup.make_curl()) as curl:
        curl.setopt(pycurl.URL, url.encode())
        curl.setopt(pycurl.TIMEOUT, seconds)
        with suppress(pycurl.error):
            curl.perform()
    return _key(lookup.addresses[0]) if lookup.addresses else urlsplit(url).hostname or ""
