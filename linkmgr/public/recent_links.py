"""Links that only redirect, in the memory of a process, for the time that the database does not
respond."""

import time
from collections import OrderedDict
from typing import NamedTuple

from linkmgr.core.database.statements import Row
from linkmgr.repository import public

Key = tuple[str | None, str]  # host and alias


class RecentLink(NamedTuple):
    id: int
    user_id: int
    url: str
    clickid: bool
    until: float  # time.monotonic()


class RecentLinks:
    seconds, maximum = 60, 10_000

    def __init__(self) -> None:
        self._links: OrderedDict[Key, RecentLink] = OrderedDict()

    def get(self, key: Key) -> RecentLink | None:
        link = self._links.get(key)
        is_usable = link and time.monotonic() < link.until and link.user_id not in public.disabled_users
        return link if is_usable else None

    def forget(self, key: Key) -> None:
        self._links.pop(key, None)

    def keep(self, key: Key, row: Row) -> RecentLink:
        now, link = time.monotonic(), self._links.get(key)
        if (
            link
            and (link.url, link.clickid) == (row["url"], row["clickid"])
            and link.until - now > self.seconds / 2
        ):
            return link
        self.forget(key)  # a new key is the last one to be removed
        link = self._links[key] = RecentLink(
            row["id"], row["user_id"], row["url"], row["clickid"], now + self.seconds
        )
        if len(self._links) > self.maximum:
            self._links.popitem(last=False)
        return link
