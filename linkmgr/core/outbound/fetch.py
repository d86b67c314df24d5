"""Fetches URLs that users supply: from public IP addresses only, with limits on size and time.

The IP address is checked when libcurl opens a socket, for every redirect and every address of a
host. So neither a redirect nor DNS rebinding reaches the internal network.
"""

import socket
import ssl
import time
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import pycurl
from marshmallow import ValidationError
from werkzeug.http import parse_date

from linkmgr.core.errors import AppError
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.urls import split_ascii
from linkmgr.core.settings import settings
from linkmgr.core.web import pool

DEADLINE = 5.0  # seconds, redirects included
MAX_BYTES = 1 << 20
MAX_REDIRECTS = 3
MAX_RETRY_SECONDS = 3600
ALLOWED_PORTS = (80, 443)

_OK = 200
_QUICK_EXIT = 322  # CURLOPT_QUICK_EXIT, unnamed in pycurl: do not wait for a DNS lookup that hangs
_GLOBAL_V6 = ip_network("2000::/3")  # the rest is NAT64, mapped IPv4, multicast or link-local
_SPECIAL = tuple(
    # IETF protocols, 6to4 relays, IETF protocols (Teredo), 6to4, documentation
    ip_network(network)
    for network in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20")
)
_ERRORS = {
    pycurl.E_UNSUPPORTED_PROTOCOL: "fetch_refused",
    pycurl.E_COULDNT_RESOLVE_HOST: "fetch_unresolved",
    pycurl.E_OPERATION_TIMEDOUT: "fetch_timed_out",
    pycurl.E_WRITE_ERROR: "fetch_too_large",
}
_CA_PATHS = ssl.get_default_verify_paths()  # the default paths of the pycurl wheel exist on Red Hat only
Networks = tuple[IPv4Network | IPv6Network, ...]
OPTIONS: dict[int, Any] = {
    pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
    pycurl.FOLLOWLOCATION: 0,
    pycurl.PROXY: "",  # ignore http_proxy and the like
    pycurl.NETRC: 0,
    pycurl.NOSIGNAL: 1,
    pycurl.USERAGENT: "linkmgr",
    _QUICK_EXIT: 1,
    **({pycurl.CAINFO: _CA_PATHS.cafile} if _CA_PATHS.cafile else {}),
    **({pycurl.CAPATH: _CA_PATHS.capath} if _CA_PATHS.capath else {}),
}


def is_allowed(address: str, port: int) -> bool:
    ip: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        ip = ip.ipv4_mapped or ip
    return (
        port in ALLOWED_PORTS
        and ip.is_global
        and not ip.is_multicast
        and (ip.version == 4 or ip in _GLOBAL_V6)  # noqa: PLR2004
        and not any(ip in network for network in _SPECIAL)
    )


def private_networks(*, is_admin: bool) -> Networks:
    """Return the networks that requests of a user may reach besides public IP addresses, on any
    port: those of an administrator, unless a setting opens them to all users."""
    return settings().private_networks if is_admin or settings().private_networks_for_all else ()


def is_allowed_in(networks: Networks, address: str, port: int) -> bool:
    ip = ip_address(address.partition("%")[0])
    return is_allowed(address, port) or any(ip in network for network in networks)


class Transfer:
    """A request of curl, which opens sockets only to public IP addresses and in `networks`.
    `addresses` are those that it tried."""

    max_bytes = MAX_BYTES  # of the response

    def __init__(self, networks: Networks = ()) -> None:
        self._networks = networks
        self.addresses: list[str] = []
        self.received = bytearray()
        self.sockets = ExitStack()
        self.is_refused = False
        self._retry_after = ""

    @property
    def retry_after(self) -> int | None:
        """Return the seconds of the header Retry-After, which is a number of seconds or a date: at
        most an hour."""
        if self._retry_after.isdecimal():
            seconds = int(self._retry_after[:9])
        elif at := parse_date(self._retry_after):
            seconds = int((at - datetime.now(UTC)).total_seconds())
        else:
            return None
        return min(max(1, seconds), MAX_RETRY_SECONDS)

    def make_curl(self) -> Any:
        curl = pycurl.Curl()
        own = {
            pycurl.OPENSOCKETFUNCTION: self._open,
            pycurl.WRITEFUNCTION: self._write,
            pycurl.HEADERFUNCTION: self._read_header,
        }
        for option, value in (OPTIONS | own).items():
            curl.setopt(option, value)
        return curl

    def _open(self, _purpose: int, target: Any) -> socket.socket | int:
        address, port = target.addr[:2]
        self.addresses.append(address)
        if not is_allowed_in(self._networks, address, port):
            self.is_refused = True
            return int(pycurl.SOCKET_BAD)
        if not self.may_connect(address):
            return int(pycurl.SOCKET_BAD)
        # pycurl duplicates the socket. This one is closed at the end of the request.
        return self.sockets.enter_context(socket.socket(target.family, target.socktype, target.protocol))

    def may_connect(self, _address: str) -> bool:
        return True

    def _read_header(self, line: bytes) -> None:
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower() == "retry-after":
            self._retry_after = value.strip()

    def _write(self, received: bytes) -> int | None:
        if len(self.received) + len(received) > self.max_bytes:
            return 0
        self.received += received
        return None


class Fetch(Transfer):
    """A GET request to a public IP address. `addresses` explain a failure.

    With `upgrade_only`, it follows only a redirect to the same URL under https. The message about
    an invalid URL begins with `subject`.
    """

    def __init__(
        self, url: str, networks: Networks = (), *, subject: str = "The URL", upgrade_only: bool = False
    ) -> None:
        super().__init__(networks)
        try:
            parts = split_ascii(url)
        except ValidationError as error:
            raise invalid(f"{subject} {error.messages[0]}", field=subject) from None
        self._host, self._url = parts.hostname, parts.geturl().encode()
        self._upgrade_only = upgrade_only

    def body(self) -> bytes:
        end, url = time.monotonic() + DEADLINE, self._url
        pool.take("fetch_busy")
        with self.sockets, closing(self.make_curl()) as curl:
            for _ in range(1 + MAX_REDIRECTS):
                status, location = self._hop(curl, url, end - time.monotonic())
                if not location or (self._upgrade_only and location != url.replace(b"http:", b"https:", 1)):
                    break
                url = location
        if status != _OK:
            raise self._error("fetch_status", status=status, redirects=MAX_REDIRECTS)
        return bytes(self.received)

    def _hop(self, curl: Any, url: bytes, seconds: float) -> tuple[int, bytes | None]:
        self.received.clear()
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.TIMEOUT_MS, max(1, int(seconds * 1000)))
        try:
            curl.perform()
        except pycurl.error as error:
            code = "fetch_refused" if self.is_refused else "fetch_unreachable"
            raise self._error(_ERRORS.get(error.args[0], code), deadline=DEADLINE) from None
        status = curl.getinfo(pycurl.RESPONSE_CODE)
        # curl also gives the location of a success
        return status, None if status == _OK else curl.getinfo_raw(pycurl.REDIRECT_URL)

    def _error(self, code: str, **values: object) -> AppError:
        return AppError(code, host=self._host, **values)


def fetch(url: str, *, subject: str = "The URL") -> bytes:
    return Fetch(url, subject=subject).body()
