"""Links of other services, read through their APIs page by page. A cursor is a JSON value."""

import re
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from linkmgr.errors import AppError
from linkmgr.imports.files.json_file import to_entry
from linkmgr.imports.rows import ImportRow, RawVisit, ReadError, Unreadable
from linkmgr.imports.sources import BY_NAME
from linkmgr.imports.values import Converter, visit
from linkmgr.outbound.service_api import ServiceRequest, ServiceResponse
from linkmgr.repository import api_keys
from linkmgr.web import outbound_budget

BITLY = "https://api-ssl.bitly.com/v4"
WAITING = {429: 60, 503: 30}  # seconds to wait without Retry-After, by status
_LINKS, _VISITS, _YOURLS_LINKS = 50, 200, 1000  # of a page; a response has at most 1 MiB
_OK, _REDIRECTS, _DENIED, _NOT_FOUND, _BROKEN = 200, range(300, 400), (401, 403), 404, 500
_MAX_TIMES = 4  # that all pages are read again
_TEMPORARY = ("fetch_timed_out", "fetch_unreachable")


class Page(NamedTuple):
    rows: list[Any]  # links as the service has them, or visits
    following: Any  # the cursor of the next page, or None
    missing: int = 0  # links that the service counts and has not sent, at the end


class NotFound(ReadError):
    """The service has no such path."""


class _TooLarge(ReadError):
    """The response has more bytes than are read."""


class Service(ABC):
    user_id: int
    is_admin: bool

    def __init__(self, source: str, base: str, headers: dict[str, str]) -> None:
        self._base, self._headers = base, headers
        columns = BY_NAME[source].columns
        self._converter = Converter(BY_NAME[source], columns, columns["url"][0])

    @abstractmethod
    def page(self, cursor: Any, read: int) -> Page:
        """Read a page. The first cursor is None. `read` is the number of links that were read so far."""

    def rows(self, page: Page, number: int) -> list[ImportRow]:
        rows = [
            [row] if isinstance(row, ImportRow) else self._converter.rows(n, to_entry(row, str(row)))
            for n, row in enumerate(page.rows, number)
        ]
        return [row._replace(number=n) for n, row in enumerate(chain.from_iterable(rows), number)]

    def _call(self, path: str, form: dict[str, str] | None = None) -> dict[str, Any]:
        outbound_budget.spend_page(self.user_id)
        try:
            headers = {"Accept": "application/json"} | self._headers
            response = ServiceRequest(self._base + path, headers, form, is_admin=self.is_admin).send()
        except AppError as error:
            if error.code == "fetch_busy":
                raise
            error_class = _TooLarge if error.code == "fetch_too_large" else ReadError
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
            raise ReadError("The service did not respond with JSON. Check that the address is that of its API.")
        return members


def _refusal(response: ServiceResponse, base: str, path: str) -> ReadError:
    status = response.status
    if status in WAITING:
        seconds = response.retry_after or WAITING[status]
        return ReadError(f"The service asks to wait (status {status}). Try again in {seconds} seconds.", seconds)
    if status in _DENIED:
        return ReadError(f"The service refused the token (status {status}). Check the token and its permissions.")
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
        f"The service redirects its API to {location[:200]}. Check that the address is that of its API, and that the "
        "API is turned on."
    )


class _Kutt(Service):
    """https://docs.kutt.it, GET /links. The newest link comes first.

    A link that is deleted meanwhile moves those behind it to earlier pages. All pages are read again if the total has
    changed, and once if links are missing. A cursor is the number of links before the page, the total at the beginning,
    or -1 if it has changed, and how often the pages have been read again.
    """

    def __init__(self, address: str, token: str) -> None:
        super().__init__("kutt", _base(address, "/api/v2", "/api"), {"X-API-KEY": token})

    def page(self, cursor: Any, read: int) -> Page:
        skip, before, times = cursor or (0, None, 0)
        members = self._call(f"/api/v2/links?limit={_LINKS}&skip={skip}")
        links, total = _list(members, "data"), members.get("total")
        if not isinstance(total, int):
            return Page(links, None)
        is_stable = before in (None, total)
        following = skip + len(links)
        if links and is_stable and following >= total and read == skip:
            return Page(links, None)
        if links and skip < total:
            return Page(links, [following, total if is_stable else -1, times])
        if (not is_stable and times < _MAX_TIMES) or (0 < read < total and not times):
            return Page([], [0, None, times + 1])
        return Page([], None, missing=max(0, total - read))


class _Yourls(Service):
    """https://yourls.org/docs/guide/advanced/api, the action `stats`. The token is the signature of a user.

    The API has no visits; the tables in an SQL dump have them. Links of the same second have no order, so a link can be
    missing at the border of two pages: each page begins in the middle of the one before. A cursor is the start of the
    page and its number of links.
    """

    def __init__(self, address: str, token: str) -> None:
        super().__init__("yourls", _base(address, "/yourls-api.php"), {})
        self._token = token

    def page(self, cursor: Any, read: int) -> Page:
        start, size = cursor or (0, _YOURLS_LINKS)
        form = {"signature": self._token, "action": "stats", "format": "json", "filter": "last"}
        try:
            members = self._call("/yourls-api.php", form | {"limit": str(size), "start": str(start)})
        except _TooLarge:
            if size <= _LINKS:
                raise
            return Page([], [start, size // 2])
        links = members.get("links") or {}
        if not isinstance(links, dict):
            raise _unexpected("links")
        text = str(_find(members, "stats", "total_links"))
        total = int(text) if re.fullmatch("[0-9]{1,18}", text) else None
        following = start + len(links)
        if links and (len(links) >= size if total is None else following < total):
            return Page([*links.values()], [start + (len(links) + 1) // 2, size])
        return Page([*links.values()], None, missing=max(0, (total or 0) - read - len(links)))


class _Bitly(Service):
    """https://dev.bitly.com/api-reference, all groups of the token. A list of links has no clicks.

    A cursor is the path of the page, and the groups behind it.
    """

    def __init__(self, _address: str, token: str) -> None:
        super().__init__("bitly", BITLY, {"Authorization": f"Bearer {token}"})

    def _group(self, groups: list[str]) -> Any:
        if not groups:
            return None
        return [f"/groups/{quote(groups[0], '')}/bitlinks?size={_LINKS}&archived=both", groups[1:]]

    def page(self, cursor: Any, read: int) -> Page:
        if cursor is None:
            names = [_find(group, "guid") for group in _list(self._call("/groups"), "groups")]
            return Page([], self._group([name for name in names if isinstance(name, str)]))
        path, groups = cursor
        members = self._call(path)
        following = _find(members, "pagination", "next")
        if not following:
            return Page(_list(members, "links"), self._group(groups))
        if not isinstance(following, str) or not following.startswith(f"{BITLY}/"):
            raise _unexpected("pagination")
        return Page(_list(members, "links"), [following.removeprefix(BITLY), groups])


class _Shlink(Service):
    """https://api-spec.shlink.io, version 3. The oldest link comes first, so that new links do not move pages.

    A cursor is the number of the next page of links or None, the time at which the import began, because later visits
    would move pages, the number of links that are expected, and the pages of visits that come before it: alias, domain
    and number. Links that are deleted meanwhile move others to pages that were read. They are missing at the end.
    """

    def __init__(self, address: str, token: str) -> None:
        super().__init__("shlink", _base(address, "/rest/v3", "/rest"), {"X-Api-Key": token})

    def page(self, cursor: Any, read: int) -> Page:
        number, began, expected, waiting = cursor or (1, datetime.now(UTC).isoformat(timespec="seconds"), None, [])
        if waiting:
            return self._visits(number, began, expected, *waiting)
        query = urlencode({"page": number, "itemsPerPage": _LINKS, "orderBy": "dateCreated-ASC"})
        links, more, total = self._list(f"/rest/v3/short-urls?{query}", "shortUrls", number)
        expected = (total if expected is None else expected) - len(links)
        waiting = [[link["shortCode"], link.get("domain"), 1] for link in links if _has_visits(link)]
        return self._page(links, number + 1 if more else None, began, expected, waiting)

    @staticmethod
    def _page(rows: list[Any], number: int | None, began: str, expected: Any, waiting: list[Any]) -> Page:
        if number or waiting:
            return Page(rows, [number, began, expected, waiting])
        return Page(rows, None, missing=max(0, expected))

    def _visits(self, next_links: int | None, began: str, expected: Any, first: Any, *others: Any) -> Page:
        code, domain, number = first
        query = {"page": number, "itemsPerPage": _VISITS, "endDate": began} | ({"domain": domain} if domain else {})
        try:
            path = f"/rest/v3/short-urls/{quote(code)}/visits?{urlencode(query)}"
            members, more, _ = self._list(path, "visits", number)
        except NotFound:  # deleted since its page was read
            members, more = [], False
        readable = [raw for member in members if (raw := _visit(member))]
        waiting = [[code, domain, number + 1], *others] if more and readable else [*others]
        link = {"custom": code} | ({"domain": domain} if domain else {})
        rows = [ImportRow(0, link, visits=readable, file="visits")] if readable else []
        return self._page(rows, next_links, began, expected, waiting)

    def _list(self, path: str, member: str, number: int) -> tuple[list[Any], bool, int]:
        """Return the elements of a page, True if there are more pages, and the number of elements of all pages."""
        members = self._call(path)
        elements, pages = _list(members, member, "data"), _find(members, member, "pagination", "pagesCount")
        total = _find(members, member, "pagination", "totalItems")
        more = bool(elements) and isinstance(pages, int) and number < pages
        return elements, more, total if isinstance(total, int) else 0


def _has_visits(link: Any) -> bool:
    code, domain = _find(link, "shortCode"), _find(link, "domain")
    if not isinstance(code, str) or not isinstance(domain, str | None):  # any other value may not fit into a cursor
        return False
    return bool(_find(link, "visitsSummary", "total") or link.get("visitsCount"))


def _visit(member: Any) -> RawVisit | None:
    country = _find(member, "visitLocation", "countryCode")
    try:
        return visit(_find(member, "date"), _find(member, "referer"), _find(member, "userAgent"), country)
    except Unreadable:
        return None


_CLASSES: dict[str, Any] = {"bitly": _Bitly, "kutt": _Kutt, "shlink": _Shlink, "yourls": _Yourls}
SERVICES = tuple(_CLASSES)


def _base(address: str, *suffixes: str) -> str:
    base = address.strip().rstrip("/")
    for suffix in suffixes:
        base = base.removesuffix(suffix).rstrip("/")
    if not base or "?" in base or "#" in base:
        raise ReadError("Send the address of the service, such as https://s.example.org.")
    return base if "://" in base else f"https://{base}"


def _find(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _list(members: dict[str, Any], *names: str) -> list[Any]:
    elements = _find(members, *names)
    if not isinstance(elements, list):
        raise _unexpected(names[0])
    return elements


def _unexpected(member: str) -> ReadError:
    return ReadError(f"The response of the service has no '{member}'. Check that the address is that of its API.")


def connect(source: str, address: str, token: str, user_id: int) -> Service:
    """Return the service at an address, which is empty for Bitly. Raise ReadError if it cannot be asked. Its requests
    are counted for the user."""
    if not re.fullmatch(r"[\x21-\x7e]{1,2048}", token):
        raise ReadError("The token must have 1 to 2048 printable ASCII characters. Copy it again from the service.")
    service: Service = _CLASSES[source](address, token)
    service.user_id, service.is_admin = user_id, api_keys.owner(user_id)["admin"]
    return service


def first_rows(service: Service, limit: int) -> list[ImportRow]:
    page = service.page(None, 0)
    if not page.rows and page.following:
        page = service.page(page.following, 0)
    return service.rows(page, 1)[:limit]
