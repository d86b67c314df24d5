"""A service whose links are read through its API page by page. A cursor is a JSON value."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from linkmgr.core.errors import AppError
from linkmgr.core.web import outbound_budget
from linkmgr.features.imports.files.json_file import to_entry
from linkmgr.features.imports.rows import ImportRow, ReadError
from linkmgr.features.imports.service_api import ServiceRequest, ServiceResponse
from linkmgr.features.imports.sources import BY_NAME
from linkmgr.features.imports.values import Converter

WAITING = {429: 60, 503: 30}  # seconds to wait without Retry-After, by status
LINKS = 50  # of a page; a response has at most 1 MiB
_OK, _REDIRECTS, _DENIED, _NOT_FOUND, _BROKEN = 200, range(300, 400), (401, 403), 404, 500
_MAX_PASSES = 5
_TEMPORARY = ("fetch_timed_out", "fetch_unreachable")


class Page(NamedTuple):
    rows: list[ImportRow]
    following: Any  # the cursor of the next page, or None
    missing: int = 0  # links that the service counts and has not sent, at the end


@dataclass(frozen=True)
class Pass:
    """A reading of all pages, of which the first has the newest links.

    A link that is added meanwhile moves others to later pages. One that is deleted moves those
    behind it to pages that were read, and the total decreases. Then all pages are read again, and
    once if links are missing.
    """

    new: int = 0  # links that were read in all passes
    sent: int = 0  # links of this pass, of which others may have had some
    total: int = 0  # of the service, at the last page
    has_moved: bool = False
    number: int = 1

    def add(self, *, new: int, sent: int, total: int) -> "Pass":
        has_moved = self.has_moved or total < self.total
        return Pass(self.new + new, self.sent + sent, total, has_moved, self.number)

    @property
    def missing(self) -> int:
        return max(0, self.total - min(self.new, self.sent))

    def again(self) -> "Pass | None":
        """Return the next pass, or None if this is the last one."""
        most = _MAX_PASSES if self.has_moved else 2 if self.missing and self.new else 1
        return Pass(self.new, number=self.number + 1) if self.number < most else None


class NotFound(ReadError):
    """The service has no such path."""


class TooLarge(ReadError):
    """The response has more bytes than are read."""


class Service(ABC):
    user_id: int
    is_admin: bool
    earlier: Callable[[list[str]], Container[str]]  # names of rows that earlier pages had, of these

    def __init__(self, source: str, base: str, headers: dict[str, str]) -> None:
        self._base, self._headers = base, headers
        columns = BY_NAME[source].columns
        self._converter = Converter(BY_NAME[source], columns, columns["url"][0])

    @abstractmethod
    def page(self, cursor: Any, read: int) -> Page:
        """Read a page. The first cursor is None. `read` is the number of rows of earlier pages."""

    def rows(self, links: list[Any], read: int) -> list[ImportRow]:
        """Convert links, without those that earlier pages had."""
        numbered = enumerate(links, read + 1)
        rows = [row for n, link in numbered for row in self._converter.rows(n, to_entry(link, str(link)))]
        earlier = self.earlier([row.name for row in rows if row.name])
        return [row for row in rows if row.name not in earlier]

    def call(self, path: str, form: dict[str, str] | None = None) -> dict[str, Any]:
        outbound_budget.spend_page(self.user_id)
        try:
            headers = {"Accept": "application/json"} | self._headers
            response = ServiceRequest(self._base + path, headers, form, is_admin=self.is_admin).send()
        except AppError as error:
            if error.code == "fetch_busy":
                raise
            error_class = TooLarge if error.code == "fetch_too_large" else ReadError
            setting = " An administrator can allow its network with LINKMGR_PRIVATE_NETWORKS."
            message = error.message + (setting if error.code == "fetch_refused" else "")
            raise error_class(message, is_temporary=error.code in _TEMPORARY) from None
        if response.status != _OK:
            raise _refusal(response, self._base, path)
        try:
            members = orjson.loads(response.body)
        except orjson.JSONDecodeError:
            members = None
        if not isinstance(members, dict):
            raise ReadError(
                "The service did not respond with JSON. Check that the address is that of its API."
            )
        return members


def _refusal(response: ServiceResponse, base: str, path: str) -> ReadError:
    status = response.status
    if status in WAITING:
        seconds = response.retry_after or WAITING[status]
        return ReadError(
            f"The service asks to wait (status {status}). Try again in {seconds} seconds.", seconds
        )
    if status in _DENIED:
        return ReadError(
            f"The service refused the token (status {status}). Check the token and its permissions."
        )
    if status == _NOT_FOUND:
        return NotFound("The service has no API at this address (status 404). Check the address.")
    if status in _REDIRECTS:
        return ReadError(_redirected(response.location, base, path.partition("?")[0]))
    message = f"The service responded with status {status} instead of 200. Try again later."
    return ReadError(message, is_temporary=status >= _BROKEN)


def _redirected(location: str, base: str, path: str) -> str:
    target = location.partition("?")[0].rstrip("/")
    if target.endswith(path) and (address := target.removesuffix(path)) != base:
        return f"The service redirects to {address[:200]}. Use that address."
    return (
        f"The service redirects its API to {location[:200]}. Check that the address is that of its "
        "API, and that the API is turned on."
    )


def base_url(address: str, *suffixes: str) -> str:
    base = address.strip().rstrip("/")
    for suffix in suffixes:
        base = base.removesuffix(suffix).rstrip("/")
    if not base or "?" in base or "#" in base:
        raise ReadError("Send the address of the service, such as https://s.example.org.")
    return base if "://" in base else f"https://{base}"


def find(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def find_list(members: dict[str, Any], *names: str) -> list[Any]:
    elements = find(members, *names)
    if not isinstance(elements, list):
        raise unexpected(names[0])
    return elements


def unexpected(member: str) -> ReadError:
    return ReadError(
        f"The response of the service has no '{member}'. Check that the address is that of its API."
    )
