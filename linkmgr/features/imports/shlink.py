"""Links and visits of a Shlink, read through its API: https://api-spec.shlink.io, version 3."""

from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from linkmgr.features.imports.rows import ImportRow, RawVisit, Unreadable
from linkmgr.features.imports.service import LINKS, NotFound, Page, Pass, Service, base_url, find, find_list, unexpected
from linkmgr.features.imports.values import visit

_VISITS = 200  # of a page


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class _Cursor:
    began: str = field(default_factory=_now)  # later visits would move pages
    number: int | None = 1  # of the next page of links
    progress: dict[str, Any] = field(default_factory=dict)  # a Pass
    visits: list[Any] = field(default_factory=list)  # pages of visits that come before it: alias, domain and number


class Shlink(Service):
    def __init__(self, address: str, token: str) -> None:
        super().__init__("shlink", base_url(address, "/rest/v3", "/rest"), {"X-Api-Key": token})

    def page(self, cursor: Any, read: int) -> Page:
        place = _Cursor(**cursor or {})
        return self._visits(place) if place.visits else self._links(place, read)

    def _links(self, place: _Cursor, read: int) -> Page:
        number = place.number or 1
        query = urlencode({"page": number, "itemsPerPage": LINKS, "orderBy": "dateCreated-DESC"})
        links, more, total = self._list(f"/rest/v3/short-urls?{query}", "shortUrls", number)
        rows = self.rows(links, read)
        progress = Pass(**place.progress).add(new=len(rows), sent=len(links), total=total)
        again = None if more else progress.again()
        following = number + 1 if more else 1 if again else None
        sent = [[find(link, "shortCode"), find(link, "domain")] for link in links]
        visited = [[row.members.get("custom"), row.members.get("domain")] for row in rows if row.clicks]
        waiting = [[*names, 1] for names in visited if names in sent]
        return _page(rows, replace(place, number=following, progress=asdict(again or progress), visits=waiting))

    def _visits(self, place: _Cursor) -> Page:
        (code, domain, number), *others = place.visits
        query = {"page": number, "itemsPerPage": _VISITS, "endDate": place.began}
        query |= {"domain": domain} if domain else {}
        try:
            path = f"/rest/v3/short-urls/{quote(code)}/visits?{urlencode(query)}"
            members, more, _ = self._list(path, "visits", number)
        except NotFound:  # deleted since its page was read
            members, more = [], False
        readable = [raw for member in members if (raw := _visit(member))]
        waiting = [[code, domain, number + 1], *others] if more and readable else others
        link = {"custom": code} | ({"domain": domain} if domain else {})
        rows = [ImportRow(0, link, visits=readable, file="visits")] if readable else []
        return _page(rows, replace(place, visits=waiting))

    def _list(self, path: str, member: str, number: int) -> tuple[list[Any], bool, int]:
        """Return the elements of a page, True if there are more pages, and the number of elements of all pages."""
        members = self.call(path)
        elements, pages = find_list(members, member, "data"), find(members, member, "pagination", "pagesCount")
        total = find(members, member, "pagination", "totalItems")
        if not isinstance(pages, int):
            raise unexpected("pagesCount")
        return elements, bool(elements) and number < pages, total if isinstance(total, int) else 0


def _page(rows: list[ImportRow], place: _Cursor) -> Page:
    if place.number or place.visits:
        return Page(rows, place)
    return Page(rows, None, Pass(**place.progress).missing)


def _visit(member: Any) -> RawVisit | None:
    country = find(member, "visitLocation", "countryCode")
    try:
        return visit(find(member, "date"), find(member, "referer"), find(member, "userAgent"), country)
    except Unreadable:
        return None
