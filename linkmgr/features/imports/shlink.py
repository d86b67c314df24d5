"""Links and visits of a Shlink, read through its API: https://api-spec.shlink.io, version 3."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any
from urllib.parse import quote, urlencode

from linkmgr.features.imports.raw_visits import visit
from linkmgr.features.imports.rows import ImportRow, RawVisit, Unreadable
from linkmgr.features.imports.service import (
    LINKS,
    NotFound,
    Page,
    Pass,
    Service,
    base_url,
    find,
    find_list,
    unexpected,
)

_VISITS = 200  # of a page
# The links of a page whose rules are read, and the seconds for them. For those behind them, the
# page is read again.
_RULED, _RULE_SECONDS = 10, 10


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class _Cursor:
    began: str = field(default_factory=_now)  # later visits would move pages
    number: int | None = 1  # of the next page of links
    skip: int = 0  # links of that page that were read
    progress: dict[str, Any] = field(default_factory=dict)  # a Pass
    # Pages of visits that come before it: alias, domain and number
    visits: list[Any] = field(default_factory=list)


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
        sent = [*self._with_rules(links[place.skip :])]
        end = place.skip + len(sent)
        rows = self.rows(sent, read)
        progress = Pass(**place.progress).add(new=len(rows), sent=len(sent), total=total)
        is_whole = end >= len(links)
        again = progress.again() if is_whole and not more else None
        following = number if not is_whole else number + 1 if more else 1 if again else None
        names = [[find(link, "shortCode"), find(link, "domain")] for link in sent]
        visited = [[row.members.get("custom"), row.members.get("domain")] for row in rows if row.clicks]
        waiting = [[*name, 1] for name in visited if name in names]
        skip, state = 0 if is_whole else end, asdict(again or progress)
        return _page(rows, replace(place, number=following, skip=skip, progress=state, visits=waiting))

    def _with_rules(self, links: list[Any]) -> Iterator[Any]:
        """Yield links, with the rules of those that have some: of as many as one page may take."""
        left, deadline = _RULED, monotonic() + _RULE_SECONDS
        for link in links:
            if not (isinstance(link, dict) and link.get("hasRedirectRules") is True):
                yield link
                continue
            if not left or (left < _RULED and monotonic() > deadline):
                return
            left -= 1
            yield link | self._rules(link)

    def _rules(self, link: dict[str, Any]) -> dict[str, Any]:
        """Return the members with the rules of a link, without asking for those of one that was
        read before or cannot be read."""
        plain = self.rows([link | {"hasRedirectRules": False}], 0)
        if all(row.unreadable for row in plain):
            return {}
        code, domain = link.get("shortCode"), link.get("domain")
        if not (isinstance(code, str) and isinstance(domain, str | None)):
            return {}
        query = f"?{urlencode({'domain': domain})}" if domain else ""
        try:
            members = self.call(f"/rest/v3/short-urls/{quote(code)}/redirect-rules{query}")
        except NotFound:  # deleted since its page was read
            return {}
        rules = find_list(members, "redirectRules")
        return {"redirectRules": rules, "hasRedirectRules": bool(rules)}

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
        """Return the elements of a page, True if there are more pages, and the number of elements
        of all pages."""
        members = self.call(path)
        elements, pages = (
            find_list(members, member, "data"),
            find(members, member, "pagination", "pagesCount"),
        )
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
