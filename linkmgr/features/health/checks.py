"""The thread of each serving process that checks the targets of links while no other process does."""

import threading
from collections import Counter, defaultdict
from contextlib import suppress
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from flask import Flask

from linkmgr.core.database.background import Background
from linkmgr.core.database.statements import Row
from linkmgr.core.outbound.fetch import Networks, private_networks
from linkmgr.core.settings import settings
from linkmgr.features.health import repository as link_checks
from linkmgr.features.health.requests import Checks

THREADS = 8
BATCH_SECONDS = 10  # in which the checks of a batch begin
_MAX_SECONDS = 50  # after which its results are stored; others are lost
PER_HOST, PER_USER = 5, 50  # links of a batch
DELAY = 60  # seconds until a new link is added: longer than a transaction that stores links
_OFFLINE_SECONDS = 60  # until the next batch if the network may be away
_HOUR, _DAY = 3600, 86400


class Checker(Background):
    """Checks batches of due links. What a host or a user has beyond its part of a batch gets a later time of its own,
    so that the links of others do not wait for it."""

    name = "checks of targets"

    def __init__(self, app: Flask) -> None:
        self._last = self._next_last = 0  # ids of links: up to the first, all have been committed
        self._noted = float("-inf")  # time.monotonic() of the second
        self._ends: dict[Any, float] = {}  # of the times of what waits, by host or user
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
                self._store(checks, self._check(checks, self._by_host(links)))
                if len(links) < link_checks.MAX_DUE:
                    link_checks.add_links(self._last)
            finally:
                link_checks.end_turn(_OFFLINE_SECONDS if len(checks.silent) > 1 else 1)

    def _store(self, checks: Checks, results: list[Row]) -> None:
        """Store results, unless none of several hosts responds. Then the network may be away, and their links are
        checked an hour later. If no host responds, one that responded before is asked as well."""
        if checks.silent:
            results += self._check(checks, [link_checks.last_ok(checks.silent)])
        if len(checks.silent) > 1:
            number = len(checks.silent)
            self._app.logger.warning("none of %s hosts responded: their links are checked again in an hour", number)
            link_checks.postpone({result["link_id"]: _HOUR for result in results})
        elif results:
            link_checks.store(results, settings().link_check)

    def _by_host(self, links: list[Row]) -> list[list[Row]]:
        now = monotonic()
        self._ends = {key: end for key, end in self._ends.items() if end > now}
        numbers, by_host, later = Counter[Any](), defaultdict[str, list[Row]](list), dict[int, float]()
        for link in links:
            if link["url"] is None:
                later[link["link_id"]] = _DAY
                continue
            host = urlsplit(link["url"]).hostname or ""
            parts = {host: PER_HOST, link["user_id"]: PER_USER}
            full = next((key for key, most in parts.items() if numbers[key] >= most), None)
            if full is None:
                numbers.update([*parts])
                by_host[host].append(link)
            else:
                self._ends[full] = max(now, self._ends.get(full, now)) + BATCH_SECONDS / parts[full]
                later[link["link_id"]] = self._ends[full] - now
        link_checks.postpone(later)
        return [*by_host.values()]

    def _check(self, checks: Checks, groups: list[list[Row]]) -> list[Row]:
        """Check groups of links, each in one thread. Those that do not begin in time stay due. Those that cannot be
        checked now are checked an hour later."""
        began, results = monotonic(), dict[int, Row | None]()
        networks = [private_networks(is_admin=is_admin) for is_admin in (False, True)]

        def check_groups() -> None:
            with suppress(IndexError):
                while True:
                    for link in groups.pop():
                        if monotonic() < began + BATCH_SECONDS and not self.stopping.is_set():
                            results[link["link_id"]] = self._result(checks, link, networks[link["admin"]])

        # Threads of a pool would delay the end of the process.
        threads = [threading.Thread(target=check_groups, daemon=True) for _ in groups[:THREADS]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0, began + _MAX_SECONDS - monotonic()))
        ended = results.copy()
        link_checks.postpone({link_id: _HOUR for link_id, result in ended.items() if result is None})
        return [result for result in ended.values() if result]

    def _result(self, checks: Checks, link: Row, networks: Networks) -> Row | None:
        try:
            changes = checks.check_next(link, networks)
        except TimeoutError:
            return None
        except Exception as error:
            self._app.logger.error("the check of link %s failed and will be retried", link["link_id"], exc_info=error)
            return None
        return {"link_id": link["link_id"], "lease": link["lease"], **changes}
