"""Links of other services, read through their APIs page by page.

A position is the number of the row before it, the cursor of its page, the number of links of this page before it, and
the visits that follow it, if the service has them.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from linkmgr.imports.rows import ImportRow, RawVisit, ReadError
from linkmgr.imports.sources import BY_NAME
from linkmgr.imports.streams import Record
from linkmgr.imports.values import Converter, Unreadable, visit
from linkmgr.outbound.service_api import ServiceRequest, ServiceResponse
from linkmgr.web.errors import RETRY_SECONDS, AppError

SERVICES = ("bitly", "kutt", "shlink", "yourls")
BITLY = "https://api-ssl.bitly.com/v4"
WAITING = {429: 60, 503: 30}  # seconds to wait without Retry-After, by status
_LINKS, _VISITS = 50, 200  # of a page; a response has at most 1 MiB
_OK, _REDIRECTS, _DENIED, _NOT_FOUND = 200, range(300, 400), (401, 403), 404


class _Page(NamedTuple):
    links: list[Any]
    following: Any  # the cursor of the next page, or None


class NotFound(ReadError):
    """The service has no such path."""


class _Service(ABC):
    """An API whose links have no visits."""

    def __init__(self, base: str, headers: dict[str, str]) -> None:
        self._base, self._headers = base, headers

    def first(self) -> Any:
        """Return the cursor of the first page, or None if there is none."""
        return 0

    @abstractmethod
    def page(self, cursor: Any) -> _Page: ...

    def visits_of(self, _link: Any) -> Any:
        """Return the cursor of the visits of a link, or None if it has none."""
        return None

    def visits(self, visits: Any, cursor: Any) -> tuple[list[RawVisit], Any]:
        """Return a page of visits, and the cursor of the next one or None."""
        raise NotImplementedError

    def _call(self, path: str, form: dict[str, str] | None = None) -> dict[str, Any]:
        """Return the members of a JSON response with status 200."""
        try:
            response = ServiceRequest(self._base + path, {"Accept": "application/json"} | self._headers, form).send()
        except AppError as error:
            raise ReadError(error.message, RETRY_SECONDS if error.code == "fetch_busy" else None) from None
        if response.status != _OK:
            raise _refusal(response)
        try:
            members = orjson.loads(response.body)
        except orjson.JSONDecodeError:
            members = None
        if not isinstance(members, dict):
            raise ReadError("The service did not respond with JSON. Check that the address is that of its API.")
        return members


def _refusal(response: ServiceResponse) -> ReadError:
    status = response.status
    if status in WAITING:
        seconds = response.retry_after or WAITING[status]
        return ReadError(f"The service asks to wait (status {status}). Try again in {seconds} seconds.", seconds)
    if status in _DENIED:
        return ReadError(f"The service refused the token (status {status}). Check the token and its permissions.")
    if status == _NOT_FOUND:
        return NotFound("The service has no API at this address (status 404). Check the address.")
    if status in _REDIRECTS:
        return ReadError(f"The service redirects to {response.location[:200]}. Use that address.")
    return ReadError(f"The service responded with status {status} instead of 200. Try again later.")


class _Kutt(_Service):
    """https://docs.kutt.it, GET /links. The newest link comes first."""

    def __init__(self, address: str, token: str) -> None:
        super().__init__(_base(address, "/api/v2", "/api"), {"X-API-KEY": token})

    def page(self, cursor: int) -> _Page:
        members = self._call(f"/api/v2/links?limit={_LINKS}&skip={cursor}")
        links, total = _list(members, "data"), members.get("total")
        following = cursor + len(links)
        return _Page(links, following if links and isinstance(total, int) and following < total else None)


class _Yourls(_Service):
    """https://yourls.org/docs/guide/advanced/api, the action `stats`. The token is the signature of a user.

    The API has no visits. The tables in an SQL dump have them.
    """

    def __init__(self, address: str, token: str) -> None:
        super().__init__(_base(address, "/yourls-api.php"), {})
        self._token = token

    def page(self, cursor: int) -> _Page:
        form = {"signature": self._token, "action": "stats", "format": "json", "filter": "last"}
        members = self._call("/yourls-api.php", form | {"limit": str(_LINKS), "start": str(cursor)})
        links = members.get("links") or {}
        if not isinstance(links, dict):
            raise _unexpected("links")
        stats, following = members.get("stats"), cursor + len(links)
        total = str(stats.get("total_links", "")) if isinstance(stats, dict) else ""
        is_last = len(links) < _LINKS or (re.fullmatch("[0-9]{1,18}", total) and following >= int(total))
        return _Page(list(links.values()), None if is_last else following)


class _Bitly(_Service):
    """https://dev.bitly.com/api-reference, all groups of the token. A list of links has no clicks.

    A cursor is the path of the page, and the groups behind it.
    """

    def __init__(self, _address: str, token: str) -> None:
        super().__init__(BITLY, {"Authorization": f"Bearer {token}"})

    def first(self) -> Any:
        groups = _list(self._call("/groups"), "groups")
        return self._group([group["guid"] for group in groups if isinstance(group, dict) and "guid" in group])

    def _group(self, groups: list[str]) -> Any:
        if not groups:
            return None
        return [f"/groups/{quote(str(groups[0]), '')}/bitlinks?size={_LINKS}&archived=both", groups[1:]]

    def page(self, cursor: Any) -> _Page:
        path, groups = cursor
        members = self._call(path)
        pagination = members.get("pagination")
        following = pagination.get("next") if isinstance(pagination, dict) else None
        if not following:
            return _Page(_list(members, "links"), self._group(groups))
        if not isinstance(following, str) or not following.startswith(f"{BITLY}/"):
            raise _unexpected("pagination")
        return _Page(_list(members, "links"), [following.removeprefix(BITLY), groups])


class _Shlink(_Service):
    """https://api-spec.shlink.io, version 3. The oldest link comes first, so that new links do not move pages.

    A cursor is the number of the page and the time at which the import began, because later visits would move pages.
    """

    def __init__(self, address: str, token: str) -> None:
        super().__init__(_base(address, "/rest/v3", "/rest"), {"X-Api-Key": token})

    def first(self) -> Any:
        return [1, datetime.now(UTC).isoformat(timespec="seconds")]

    def page(self, cursor: Any) -> _Page:
        number, began = cursor
        query = urlencode({"page": number, "itemsPerPage": _LINKS, "orderBy": "dateCreated-ASC"})
        members, more = self._list(f"/rest/v3/short-urls?{query}", "shortUrls", number)
        return _Page(members, [number + 1, began] if more else None)

    def visits_of(self, link: Any) -> Any:
        if not (isinstance(link, dict) and isinstance(link.get("shortCode"), str)):
            return None
        summary = link.get("visitsSummary")
        total = summary.get("total") if isinstance(summary, dict) else link.get("visitsCount")
        return [link["shortCode"], link.get("domain"), 1] if total else None

    def visits(self, visits: Any, cursor: Any) -> tuple[list[RawVisit], Any]:
        code, domain, number = visits
        query = {"page": number, "itemsPerPage": _VISITS, "endDate": cursor[1]} | ({"domain": domain} if domain else {})
        try:
            members, more = self._list(f"/rest/v3/short-urls/{quote(code)}/visits?{urlencode(query)}", "visits", number)
        except NotFound:  # deleted since its page was read
            return [], None
        readable = [raw for member in members if (raw := _visit(member))]
        return readable, [code, domain, number + 1] if more and readable else None

    def _list(self, path: str, member: str, number: int) -> tuple[list[Any], bool]:
        """Return the elements of a page, and True if there are more pages."""
        page = self._call(path).get(member)
        if not isinstance(page, dict):
            raise _unexpected(member)
        pagination, elements = page.get("pagination"), _list(page, "data")
        pages = pagination.get("pagesCount") if isinstance(pagination, dict) else None
        return elements, bool(elements) and isinstance(pages, int) and number < pages


def _visit(member: Any) -> RawVisit | None:
    location = member.get("visitLocation") if isinstance(member, dict) else None
    country = location.get("countryCode") if isinstance(location, dict) else None
    try:
        return visit(member["date"], member.get("referer"), member.get("userAgent"), country)
    except (Unreadable, KeyError, TypeError, AttributeError):
        return None


_CLASSES: dict[str, type[Any]] = {"bitly": _Bitly, "kutt": _Kutt, "shlink": _Shlink, "yourls": _Yourls}


def _base(address: str, *suffixes: str) -> str:
    """Return the address of a service without the path of its API."""
    base = address.strip().rstrip("/")
    for suffix in suffixes:
        base = base.removesuffix(suffix).rstrip("/")
    if not base or "?" in base or "#" in base:
        raise ReadError("Send the address of the service, such as https://s.example.org.")
    return base if "://" in base else f"https://{base}"


def _list(members: dict[str, Any], name: str) -> list[Any]:
    elements = members.get(name)
    if not isinstance(elements, list):
        raise _unexpected(name)
    return elements


def _unexpected(member: str) -> ReadError:
    return ReadError(f"The response of the service has no '{member}'. Check that the address is that of its API.")


def read_service(source: str, address: str, token: str, position: Any = None) -> Iterator[ImportRow]:
    """Read the rows of a service after `position`. `address` is empty for Bitly, which has only one.

    Raise ReadError for a service that cannot be read any further.
    """
    if not re.fullmatch(r"[\x21-\x7e]{1,2048}", token):
        raise ReadError("The token must have 1 to 2048 printable ASCII characters. Copy it again from the service.")
    service = _CLASSES[source](address, token)
    converter = Converter(BY_NAME[source], BY_NAME[source].columns, BY_NAME[source].columns["url"][0])
    number, cursor, index, visits = position or (0, service.first(), 0, None)
    page = None
    while cursor is not None:
        if visits:
            code, domain, _ = visits
            raw, visits = service.visits(visits, cursor)
            if raw:
                number += 1
                record = {"custom": code} | ({"domain": domain} if domain else {})
                yield ImportRow(number, record, [], None, None, raw, {}, None, [number, cursor, index, visits])
            continue
        page = page or service.page(cursor)
        if index >= len(page.links):
            cursor, index, page = page.following, 0, None
            continue
        link = page.links[index]
        number, index, visits = number + 1, index + 1, service.visits_of(link)
        yield converter.row(number, _record(link), [number, cursor, index, visits])


def _record(link: Any) -> Record:
    if isinstance(link, dict):
        return Record(link, None, 0)
    return Record({"row": str(link)[:500]}, "is not a JSON object with the members of a link.", 0)
