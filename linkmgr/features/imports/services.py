"""Services whose links can be read through their APIs."""

import re
from collections.abc import Callable, Container
from typing import Any
from urllib.parse import quote

from linkmgr.features.imports.rows import ImportRow, ReadError
from linkmgr.features.imports.service import (
    LINKS,
    Page,
    Pass,
    Service,
    TooLarge,
    base_url,
    find,
    find_list,
    unexpected,
)
from linkmgr.features.imports.shlink import Shlink
from linkmgr.repository import users

BITLY = "https://api-ssl.bitly.com/v4"
_YOURLS_LINKS = 1000  # of a page; a response has at most 1 MiB


class _Kutt(Service):
    """https://docs.kutt.it, GET /links. A cursor is the number of links before the page, and the
    pass."""

    def __init__(self, address: str, token: str) -> None:
        super().__init__("kutt", base_url(address, "/api/v2", "/api"), {"X-API-KEY": token})

    def page(self, cursor: Any, read: int) -> Page:
        skip, progress = cursor or (0, {})
        members = self.call(f"/api/v2/links?limit={LINKS}&skip={skip}")
        links, total = find_list(members, "data"), members.get("total")
        if not isinstance(total, int):
            raise unexpected("total")
        rows = self.rows(links, read)
        current, following = (
            Pass(**progress).add(new=len(rows), sent=len(links), total=total),
            skip + len(links),
        )
        if links and following < total:
            return Page(rows, [following, current])
        if again := current.again():
            return Page(rows, [0, again])
        return Page(rows, None, current.missing)


class _Yourls(Service):
    """https://yourls.org/docs/guide/advanced/api, the action `stats`. The token is the signature of
    a user.

    The API has no visits; the tables in an SQL dump have them. Links of the same second have no
    order, and those that are deleted meanwhile move others to earlier pages, so each page begins in
    the middle of the one before. A cursor is the start of the page and its number of links.
    """

    def __init__(self, address: str, token: str) -> None:
        super().__init__("yourls", base_url(address, "/yourls-api.php"), {})
        self._token = token

    def page(self, cursor: Any, read: int) -> Page:
        start, size = cursor or (0, _YOURLS_LINKS)
        form = {"signature": self._token, "action": "stats", "format": "json", "filter": "last"}
        try:
            members = self.call("/yourls-api.php", form | {"limit": str(size), "start": str(start)})
        except TooLarge:
            if size <= LINKS:
                raise
            return Page([], [start, size // 2])
        links = members.get("links") or {}
        if not isinstance(links, dict):
            raise unexpected("links")
        rows = self.rows([*links.values()], read)
        text = str(find(members, "stats", "total_links"))
        total = int(text) if re.fullmatch("[0-9]{1,18}", text) else None
        following = start + len(links)
        if links and (len(links) >= size if total is None else following < total):
            return Page(rows, [start + (len(links) + 1) // 2, size])
        return Page(rows, None, max(0, (total or 0) - read - len(rows)))


class _Bitly(Service):
    """https://dev.bitly.com/api-reference, all groups of the token. A list of links has no clicks.

    A cursor is the path of the page, and the groups behind it. The path has a key, so that no link
    moves.
    """

    def __init__(self, _address: str, token: str) -> None:
        super().__init__("bitly", BITLY, {"Authorization": f"Bearer {token}"})

    def _group(self, groups: list[str]) -> Any:
        if not groups:
            return None
        return [f"/groups/{quote(groups[0], '')}/bitlinks?size={LINKS}&archived=both", groups[1:]]

    def page(self, cursor: Any, read: int) -> Page:
        if cursor is None:
            names = [find(group, "guid") for group in find_list(self.call("/groups"), "groups")]
            return Page([], self._group([name for name in names if isinstance(name, str)]))
        path, groups = cursor
        members = self.call(path)
        rows = self.rows(find_list(members, "links"), read)
        following = find(members, "pagination", "next")
        if not following:
            return Page(rows, self._group(groups))
        if not isinstance(following, str) or not following.startswith(f"{BITLY}/"):
            raise unexpected("pagination")
        return Page(rows, [following.removeprefix(BITLY), groups])


_CLASSES: dict[str, Any] = {"bitly": _Bitly, "kutt": _Kutt, "shlink": Shlink, "yourls": _Yourls}
SERVICES = tuple(_CLASSES)


def connect(
    source: str,
    address: str,
    token: str,
    user_id: int,
    earlier: Callable[[list[str]], Container[str]] = lambda _names: (),
) -> Service:
    """Return the service at an address, which is empty for Bitly. Raise ReadError if it cannot be
    asked. Its requests are counted for the user. `earlier` returns which of some names of rows were
    read before."""
    if not re.fullmatch(r"[\x21-\x7e]{1,2048}", token):
        raise ReadError(
            "The token must have 1 to 2048 printable ASCII characters. Copy it again from the service."
        )
    service: Service = _CLASSES[source](address, token)
    service.user_id, service.is_admin, service.earlier = user_id, users.owner(user_id)["admin"], earlier
    return service


def read_page(service: Service, cursor: Any, read: int) -> Page:
    page = service.page(cursor, read)
    return page._replace(rows=[row._replace(number=n) for n, row in enumerate(page.rows, read + 1)])


def first_rows(service: Service, limit: int) -> list[ImportRow]:
    page = read_page(service, None, 0)
    if not page.rows and page.following:
        page = read_page(service, page.following, 0)
    return page.rows[:limit]
