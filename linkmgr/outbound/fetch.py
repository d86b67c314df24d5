"""The one way to fetch what a user named: only from public addresses, only so much, only so long.

libcurl asks before it opens a socket, on every hop and for every address of a name, so that neither a redirect
nor a name that changes its address between two look-ups leads inside.
"""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import pycurl
from marshmallow import ValidationError

from linkmgr.fields.urls import split_ascii
from linkmgr.web.errors import RETRY_SECONDS, AppError

DEADLINE = 5.0  # seconds, for all of it
MAX_BYTES = 1 << 20  # bytes
REDIRECTS = 3
PORTS = (80, 443)
MAX_CONCURRENT = 2  # of a worker's 4 threads, so that slow foreign servers do not stop other requests

_OK = 200
_QUICK_EXIT = 322  # of libcurl, without a name in pycurl: a look-up that hangs is left behind, not waited for
_GLOBAL_V6 = ip_network("2000::/3")  # what else is global stands for something: IPv4 (NAT64, mapped), a group, a link
_SPECIAL = tuple(
    # of IETF's protocols; relays of 6to4; of protocols again, Teredo's for one; of 6to4; in documentation
    ip_network(network)
    for network in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20")
)
_REFUSALS = {
    pycurl.E_UNSUPPORTED_PROTOCOL: "fetch_refused",
    pycurl.E_COULDNT_RESOLVE_HOST: "fetch_unresolved",
    pycurl.E_OPERATION_TIMEDOUT: "fetch_timed_out",
    pycurl.E_WRITE_ERROR: "fetch_too_large",
}
_authorities = ssl.get_default_verify_paths()  # the machine's: the ones that the wheel looks for are Red Hat's
OPTIONS: dict[int, Any] = {
    pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
    pycurl.FOLLOWLOCATION: 0,
    pycurl.PROXY: "",  # none, whatever the environment says
    pycurl.NETRC: 0,
    pycurl.NOSIGNAL: 1,
    pycurl.USERAGENT: "linkmgr",
    _QUICK_EXIT: 1,
    **({pycurl.CAINFO: _authorities.cafile} if _authorities.cafile else {}),
    **({pycurl.CAPATH: _authorities.capath} if _authorities.capath else {}),
}
_room = threading.BoundedSemaphore(MAX_CONCURRENT)


@contextmanager
def _in_room() -> Iterator[None]:
    """Nobody waits for room, since the threads that wait would be as stuck as those that fetch."""
    if not _room.acquire(blocking=False):
        raise AppError("fetch_busy", seconds=RETRY_SECONDS)
    try:
        yield
    finally:
        _room.release()


def allowed(address: str, port: int) -> bool:
    """Whether a socket may be opened to there."""
    ip: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        ip = ip.ipv4_mapped or ip
    return (
        port in PORTS
        and ip.is_global
        and not ip.is_multicast
        and (ip.version == 4 or ip in _GLOBAL_V6)  # noqa: PLR2004
        and not any(ip in network for network in _SPECIAL)
    )


class Fetch:
    """One fetch.  `addresses` are those that it was led to, in order, for explaining why it failed.

    `upgrade_only`: the one redirect that is followed is to the same address under https.
    """

    def __init__(self, url: str, *, upgrade_only: bool = False) -> None:
        try:
            parts = split_ascii(url)
        except ValidationError as error:
            raise AppError("invalid", problems=f"The address {error.messages[0]}") from None
        self._host, self._url = parts.hostname, parts.geturl().encode()
        self._upgrade_only = upgrade_only
        self.addresses: list[str] = []
        self._refused = False
        self._received = bytearray()
        self._sockets = ExitStack()

    def body(self) -> bytes:
        end, url = time.monotonic() + DEADLINE, self._url
        with _in_room(), self._sockets, closing(self._curl()) as curl:
            for _ in range(1 + REDIRECTS):
                status, location = self._hop(curl, url, end - time.monotonic())
                if not location or (self._upgrade_only and location != url.replace(b"http:", b"https:", 1)):
                    break
                url = location
        if status != _OK:
            raise self._refusal("fetch_status", status=status, redirects=REDIRECTS)
        return bytes(self._received)

    def _curl(self) -> Any:
        curl = pycurl.Curl()
        for option, value in OPTIONS.items():
            curl.setopt(option, value)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open)
        curl.setopt(pycurl.WRITEFUNCTION, self._write)
        return curl

    def _hop(self, curl: Any, url: bytes, seconds: float) -> tuple[int, bytes | None]:
        """The status, and where it redirects to."""
        self._received.clear()
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.TIMEOUT_MS, max(1, int(seconds * 1000)))
        try:
            curl.perform()
        except pycurl.error as error:
            code = "fetch_refused" if self._refused else "fetch_unreachable"
            raise self._refusal(_REFUSALS.get(error.args[0], code), deadline=DEADLINE) from None
        return curl.getinfo(pycurl.RESPONSE_CODE), curl.getinfo_raw(pycurl.REDIRECT_URL)

    def _open(self, _purpose: int, target: Any) -> socket.socket | int:
        address, port = target.addr[:2]
        self.addresses.append(address)
        if not allowed(address, port):
            self._refused = True
            return int(pycurl.SOCKET_BAD)
        # libcurl uses a duplicate; this one is closed at the end.
        return self._sockets.enter_context(socket.socket(target.family, target.socktype, target.protocol))

    def _write(self, received: bytes) -> int | None:
        if len(self._received) + len(received) > MAX_BYTES:
            return 0
        self._received += received
        return None

    def _refusal(self, code: str, **values: object) -> AppError:
        return AppError(code, host=self._host, **values)


def fetch(url: str) -> bytes:
    """What a public web server answers with 200."""
    return Fetch(url).body()
