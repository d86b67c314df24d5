"""Checks of the targets of links, as the robots.txt of their hosts allow, and the titles of their
pages."""

import html
import math
import re
import time
from contextlib import closing, suppress
from itertools import takewhile
from typing import NamedTuple
from urllib.parse import urlsplit

import pycurl
from marshmallow import ValidationError
from protego import Protego

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.urls import split_ascii
from linkmgr.core.outbound.fetch import Networks
from linkmgr.features.health.addresses import Addresses, SpacedTransfer

AGENT = "linkmgr-link-check"
DEADLINE = 10  # seconds of a request
LINK_SECONDS = 28  # after which no other request of a turn begins
MAX_REDIRECTS = 10  # of a target
PER_TURN = 5  # targets of a link; the others are checked in the next turns
SPACING = 1.0  # seconds between two requests to an IP address
MAX_BYTES = 256 << 10  # of a page
MAX_ROBOTS_BYTES = 512 << 10  # at least 500 KiB by RFC 9309
MAX_TITLE = 255
_SUCCESS, _REDIRECTS = range(200, 300), range(300, 400)
_ERROR, _SERVER_ERROR = 400, 500
_MISSING = (404, 410)
_REFUSALS = (503, *range(520, 531), 999)  # to programs, by hosts and by services in front of them
_REFUSED = "The host has no public IP address, or the port is not 80 or 443."
_ENDLESS = f"The target redirects more than {MAX_REDIRECTS} times."
_LATE = {pycurl.E_OPERATION_TIMEDOUT, pycurl.E_WRITE_ERROR, pycurl.E_PARTIAL_FILE}
_PROBLEMS = {
    pycurl.E_COULDNT_RESOLVE_HOST: "The host name could not be resolved.",
    pycurl.E_OPERATION_TIMEDOUT: f"The host did not respond within {DEADLINE} seconds.",
    pycurl.E_PEER_FAILED_VERIFICATION: "The TLS certificate is not valid.",
}
# Before the title, other elements and comments may contain the same tag.
_TITLE = re.compile(
    rb"<!--(?:>|->|.*?(?:--!?>|\Z))|<svg\b[^<>]*/>"
    rb"|<(svg|math|script|style|template)\b.*?(?:</\1\s*>|\Z)"
    rb"|<title(?:\s[^<>]*)?>(?P<text>[^<]{1,2000})",
    re.IGNORECASE | re.DOTALL,
)
# In all spellings that Protego reads, with the name of a program or `*`
_USER_AGENT = re.compile(r"\s*user(?:-|\s*)agent[\s:]+([\w*-]*)", re.IGNORECASE)
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_AS_WINDOWS = (b"iso-8859-1", b"latin1", b"us-ascii")  # as browsers read them


class Result(NamedTuple):
    """`outcome` is "ok", "failed", or "unchecked" if the target cannot be checked, with the
    reason."""

    outcome: str
    reason: str = ""
    title: str = ""


class _End(Exception):
    """Raised with the result of a check that got no response."""

    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(result.reason)


class _Response(NamedTuple):
    status: int
    location: str  # of a redirect, else empty
    type: str
    body: bytes


def _send(
    method: str,
    url: str,
    transfer: SpacedTransfer,
    agent: str,
    cookies: list[str],
) -> _Response | None:
    """Return the response, or None if the address is busy. A page that does not end in time, or is
    longer than what is read, is one."""
    with transfer.sockets, closing(transfer.make_curl()) as curl:
        curl.setopt(pycurl.URL, url.encode())
        curl.setopt(pycurl.TIMEOUT, DEADLINE)
        curl.setopt(pycurl.NOBODY, method == "HEAD")
        curl.setopt(pycurl.USERAGENT, agent)
        curl.setopt(pycurl.COOKIEFILE, "")
        for cookie in cookies:
            curl.setopt(pycurl.COOKIELIST, cookie)
        try:
            curl.perform()
        except pycurl.error as error:
            if curl.getinfo(pycurl.RESPONSE_CODE) < _SUCCESS[0] or error.args[0] not in _LATE:
                if transfer.busy:
                    return None
                if transfer.is_refused:
                    raise _End(Result("unchecked", _REFUSED)) from None
                reason = _PROBLEMS.get(error.args[0], "The host could not be reached.")
                raise _End(Result("failed", reason)) from None
        cookies[:] = curl.getinfo(pycurl.INFO_COOKIELIST)
        status = curl.getinfo(pycurl.RESPONSE_CODE)
        location, content_type = (
            (curl.getinfo_raw(name) or b"").decode("latin-1")
            for name in (pycurl.REDIRECT_URL, pycurl.CONTENT_TYPE)
        )
        location = location if status in _REDIRECTS else ""  # curl also gives that of a success
        return _Response(status, location, content_type, bytes(transfer.received))


class Checks:
    """The checks of a batch, which several threads do. `service` is its URL, for the owners of
    hosts."""

    def __init__(self, service: str) -> None:
        self._agent, self._addresses = f"{AGENT}/1.0 (+{service})", Addresses(SPACING)
        self._robots: dict[str, Protego | Result] = {}  # by scheme, host and port
        self._has_response, self._silent = False, set[str]()

    @property
    def silent(self) -> list[str]:
        """Return the hosts that did not respond, or none if one did."""
        return [] if self._has_response else [*self._silent]

    def check_next(self, link: Row, networks: Networks) -> Row:
        """Check the target that failed last and the next ones of a link, until one fails. Return
        what changes in its row of `link_checks`: the title of `url`, and its result if none fails.
        Raise a TimeoutError if no target can be checked in time, also because other checks request
        the same host."""
        end = time.monotonic() + LINK_SECONDS
        targets, passed = [*dict.fromkeys(filter(None, link["targets"]))], link["passed"]
        turn, changes = targets[passed : passed + PER_TURN], Row()
        checked = set[str]()
        with suppress(TimeoutError):
            for url in dict.fromkeys([url for url in targets if url == link["target"]] + turn):
                result = self.check(
                    url, networks, wants_title=link["wants_title"] and url == link["url"], end=end
                )
                columns = result._asdict() | {"target": result.reason and url}
                if result.outcome == "failed":
                    return columns | {"title": changes.get("title", ""), "passed": 0}
                if url == link["url"]:
                    changes = columns
                checked.add(url)
        passed += len([*takewhile(checked.__contains__, turn)])
        if passed == link["passed"]:
            raise TimeoutError
        return changes | {"passed": passed % len(targets)}

    def check(self, url: str, networks: Networks, *, wants_title: bool, end: float = math.inf) -> Result:
        """Request a target with HEAD, and with GET if that has no success or the title of the page
        is to be read. Raise a TimeoutError at the end, or if that takes too long."""
        end = min(end, time.monotonic() + LINK_SECONDS)
        most = MAX_BYTES if wants_title else 0
        for method in ("GET",) if wants_title else ("HEAD", "GET"):
            try:
                response = self._follow(method, url, networks, end, max_bytes=most)
                result = _result(response)
                if response.status < _ERROR:
                    break
            except _End as failure:
                result = failure.result
                if result.reason == _ENDLESS:  # another ten requests would take too long
                    break
                if result.outcome == "failed":
                    self._silent.add(urlsplit(url).hostname or "")
        return result

    def _follow(
        self,
        method: str,
        url: str,
        networks: Networks,
        end: float,
        *,
        max_bytes: int,
        is_robots: bool = False,
    ) -> _Response:
        cookies: list[str] = []  # some sites redirect to themselves until they get theirs
        for _ in range(1 + MAX_REDIRECTS):
            if not (is_robots or self._rules(url, networks, end).can_fetch(url, AGENT)):
                raise _End(Result("unchecked", "The robots.txt of the host does not allow it."))
            response = self._send(method, url, networks, end, max_bytes=max_bytes, cookies=cookies)
            self._has_response = True
            if not response.location:
                return response
            try:
                url = split_ascii(response.location).geturl()
            except ValidationError:  # another scheme, such as that of an app
                return response
        raise _End(Result("failed", _ENDLESS))

    def _send(
        self,
        method: str,
        url: str,
        networks: Networks,
        end: float,
        *,
        max_bytes: int,
        cookies: list[str],
    ) -> _Response:
        held = set[str]()
        try:
            while time.monotonic() <= end:
                transfer = SpacedTransfer(networks, self._addresses, held)
                transfer.max_bytes = max_bytes
                if response := _send(method, url, transfer, self._agent, cookies):
                    return response
                self._addresses.give_back(held)
                held.clear()
                if self._addresses.take(transfer.busy, end):
                    held.add(transfer.busy)
            raise TimeoutError
        finally:
            self._addresses.give_back(held)

    def _rules(self, url: str, networks: Networks, end: float) -> Protego:
        """Return what a robots.txt allows: everything without one, nothing if its host has an
        error. If there is no response, the host fails as well."""
        parts = urlsplit(url)
        origin, rules = f"{parts.scheme}://{parts.netloc}", self._robots
        if origin not in rules:
            try:
                robots, most = f"{origin}/robots.txt", MAX_ROBOTS_BYTES
                response = self._follow("GET", robots, networks, end, max_bytes=most, is_robots=True)
                rules[origin] = _parsed(response)
            except _End as failure:
                is_endless = failure.result.reason == _ENDLESS
                rules[origin] = Protego.parse("") if is_endless else failure.result
        decided = rules[origin]
        if isinstance(decided, Result):
            raise _End(decided)
        return decided


def _parsed(response: _Response) -> Protego | Result:
    if response.status >= _SERVER_ERROR:
        reason = f"The robots.txt of the host has the status {response.status}."
        return Result("unchecked", reason)
    text = response.body.decode("utf-8-sig", "replace") if response.status in _SUCCESS else ""
    with suppress(ValueError):  # of a path that is no URL
        return Protego.parse("\n".join(map(_with_one_agent, text.splitlines())))
    return Protego.parse("")


def _with_one_agent(line: str) -> str:
    """Return a line with one name for all other programs, since each name gets a copy of the rules
    behind it: 512 KiB can have 15,000 of both."""
    match = _USER_AGENT.match(line)
    if match is None:
        return line
    name = match[1].lower()
    return f"User-agent: {name if name in ('*', AGENT) else 'other'}"


def _result(response: _Response) -> Result:
    if response.status in _REFUSALS:
        reason = f"The host may refuse programs: the response has the status {response.status}."
        return Result("unchecked", reason)
    if response.status in _MISSING or response.status >= _SERVER_ERROR:
        return Result("failed", f"The response has the status {response.status}.")
    is_page = response.status in _SUCCESS and "html" in response.type.lower()
    return Result("ok", title=_title(response) if is_page else "")


def _title(response: _Response) -> str:
    match = next((item for item in _TITLE.finditer(response.body) if item["text"]), None)
    charset = _CHARSET.search(response.type.encode("latin-1")) or _CHARSET.search(response.body[:1024])
    name = charset[1].lower() if charset else b"utf-8"
    try:
        text = (
            match["text"].decode("cp1252" if name in _AS_WINDOWS else name.decode(), "replace")
            if match
            else ""
        )
    except (LookupError, ValueError):
        text = match["text"].decode(errors="replace") if match else ""
    printable = "".join(char if char.isprintable() else " " for char in html.unescape(text))
    return " ".join(printable.split())[:MAX_TITLE].rstrip()
