"""The thread of each serving process that checks the targets of links while no other process
does."""

import threading
from collections import Counter
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from flask import Flask

from linkmgr.core.database.background import Background
from linkmgr.core.database.statements import Row
from linkmgr.core.outbound.fetch import Networks, private_networks
from linkmgr.core.settings import settings
from linkmgr.features.health import repository as link_checks
from linkmgr.features.health.addresses import locate
from linkmgr.features.health.requests import DEADLINE, Checks

THREADS = 8
BATCH_SECONDS = 10  # in which the checks of a batch begin
MAX_SECONDS = 58  # after which its results are stored; others are lost
PER_HOST, PER_ADDRESS, PER_USER = 5, 5, 50  # links of a batch
DELAY = 60  # seconds until a new link is added: longer than a transaction that stores links
_OFFLINE_SECONDS = 60  # until the next batch if the network may be away
_HOUR, _DAY = 3600, 86400


class Turn:
    """The links of a batch. Threads take one of an IP address at a time, at first of the users who
    have the fewest threads."""

    def __init__(self, links: list[Row]) -> None:
        self._waiting, self._lock = links, threading.Lock()
        self._addresses = dict[str, str]()  # of hosts, as soon as they are known
        self._running, self._begun = Counter[Any](), Counter[str]()

    def _address(self, link: Row) -> str:
        host = _host(link)
        return self._addresses.get(host, host)

    def take(self) -> Row | None:
        while link := self._take():
            if _host(link) in self._addresses:
                return link
            address = locate(link["url"], DEADLINE)
            self.end(link)
            with self._lock:
                self._addresses[_host(link)] = address
                self._waiting.insert(0, link)
        return None

    def _take(self) -> Row | None:
        with self._lock:
            free = (link for link in self._waiting if not self._running[self._address(link)])
            links = [link for link in free if self._begun[self._address(link)] < PER_ADDRESS]
            link = min(links, key=lambda link: self._running[link["user_id"]], default=None)
            if link:
                self._waiting.remove(link)
                self._running.update((self._address(link), link["user_id"]))
                self._begun[self._address(link)] += _host(link) in self._addresses
            return link

    def end(self, link: Row) -> None:
        with self._lock:
            self._running.subtract((self._address(link), link["user_id"]))

    def left(self) -> list[tuple[Row, str]]:
        """Return the links whose address has had its part of the batch, with the address."""
        with self._lock:
            left = [(link, self._address(link)) for link in self._waiting]
            return [(link, address) for link, address in left if self._begun[address] >= PER_ADDRESS]


class Checker(Background):
    """Checks batches of due links. What a host, an IP address or a user has beyond its part of a
    batch gets a later time of its own, so that the links of others do not wait for it."""

    name = "checks of targets"

    def __init__(self, app: Flask) -> None:
        self._last = self._next_last = 0  # ids of links: up to the first, all have been committed
        self._noted = float("-inf")  # time.monotonic() of the second
        self._ends: dict[Any, float] = {}  # of the times of what waits, by host, address or user
        super().__init__(app)

    def start(self) -> None:
        with self._app.app_context():
            is_on = settings().link_check > 0
        if is_on:
            super().start()

    def work(self) -> None:
        if monotonic() > self._noted + DELAY:
            self._last, self._next_last, self._noted = self._next_last, link_checks.last_id(), monotonic()
        if link_checks.begin_turn(self._last):
            checks = Checks(settings().base_url)
            try:
                links = link_checks.due()
                self._store(checks, self._check(checks, self._part_of(links)))
                if len(links) < link_checks.MAX_DUE:
                    link_checks.add_links(self._last)
            finally:
                link_checks.end_turn(_OFFLINE_SECONDS if len(checks.silent) > 1 else 1)

    def _store(self, checks: Checks, results: list[Row]) -> None:
        """Store results, unless none of several hosts responds. Then the network may be away, and
        their links are checked an hour later. If no host responds, one that responded before is
        asked as well."""
        if checks.silent:
            results += self._check(checks, link_checks.last_ok(checks.silent))
        if len(checks.silent) > 1:
            number = len(checks.silent)
            self._app.logger.warning(
                "none of %s hosts responded: their links are checked again in an hour", number
            )
            link_checks.postpone({result["link_id"]: _HOUR for result in results})
        elif results:
            link_checks.store(results, settings().link_check)

    def _part_of(self, links: list[Row]) -> list[Row]:
        now = monotonic()
        self._ends = {key: end for key, end in self._ends.items() if end > now}
        numbers, part, later = Counter[Any](), list[Row](), dict[int, float]()
        for link in links:
            if link["url"] is None:
                later[link["link_id"]] = _DAY
                continue
            parts = {_host(link): PER_HOST, link["user_id"]: PER_USER}
            full = next((key for key, most in parts.items() if numbers[key] >= most), None)
            if full is None:
                numbers.update([*parts])
                part.append(link)
            else:
                later[link["link_id"]] = self._seconds_of(full, parts[full])
        link_checks.postpone(later)
        return part

    def _seconds_of(self, key: Any, most: int) -> float:
        """Return the time of the next link of what has had its part, and let those behind it
        wait."""
        now = monotonic()
        self._ends[key] = max(now, self._ends.get(key, now)) + BATCH_SECONDS / most
        return self._ends[key] - now

    def _check(self, checks: Checks, links: list[Row]) -> list[Row]:
        """Check links. Those that do not begin in time stay due. Those that cannot be checked now
        are checked an hour later."""
        began, results, turn = monotonic(), dict[int, Row | None](), Turn(links)
        networks = [private_networks(is_admin=is_admin) for is_admin in (False, True)]

        def may_begin() -> bool:
            return monotonic() < began + BATCH_SECONDS and not self.stopping.is_set()

        def check_links() -> None:
            while may_begin() and (link := turn.take()):
                results[link["link_id"]] = self._result(checks, link, networks[link["admin"]])
                turn.end(link)

        # Threads of a pool would delay the end of the process.
        threads = [threading.Thread(target=check_links, daemon=True) for _ in links[:THREADS]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0, began + MAX_SECONDS - monotonic()))
        ended = results.copy()
        later: dict[int, float] = {link_id: _HOUR for link_id, result in ended.items() if result is None}
        left = {link["link_id"]: self._seconds_of(address, PER_ADDRESS) for link, address in turn.left()}
        link_checks.postpone(later | left)
        return [result for result in ended.values() if result]

    def _result(self, checks: Checks, link: Row, networks: Networks) -> Row | None:
        try:
            changes = checks.check_next(link, networks)
        except TimeoutError:
            return None
        except Exception as error:
            self._app.logger.error(
                "the check of link %s failed and will be retried", link["link_id"], exc_info=error
            )
            return None
        return {"link_id": link["link_id"], "lease": link["lease"], **changes}


def _host(link: Row) -> str:
    return urlsplit(link["url"]).hostname or ""
