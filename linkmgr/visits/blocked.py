"""The blocked hosts and links, in the memory of each process, so that a redirect does not look them
up. A change takes effect within REFRESH_SECONDS."""

import re
import time
from typing import Any

import psycopg2
from flask import Flask

from linkmgr.core.database import session
from linkmgr.core.database.lookups import public_row
from linkmgr.core.settings import this_app

REFRESH_SECONDS = 2
_HOST = re.compile(r"https?://(\[[0-9a-f:]+\]|[^/:?#\s]+)")  # as host_of() in schema.sql


class Blocked:
    def __init__(self) -> None:
        self._version = -1
        self._until = float("-inf")  # time.monotonic()
        self._hosts: frozenset[str] = frozenset()
        self._links: frozenset[int] = frozenset()

    def refresh(self, *, now: bool = False) -> None:
        """Read what is blocked if it has changed. While the database does not respond, what was
        read last counts."""
        if not now and time.monotonic() < self._until:
            return
        self._until = time.monotonic() + REFRESH_SECONDS
        try:
            # A redirect that the database has kept waiting does not wait again.
            stored = public_row("SELECT blocks FROM service", can_wait=self._version < 0)
            if stored and stored["blocks"] != self._version:
                self._read()
        except psycopg2.Error as error:
            if not session.is_connection_lost(error):
                raise

    def _read(self) -> None:
        stored = public_row(
            """
            SELECT blocks,
                   (SELECT array_agg(host) FROM reports WHERE kind = 'host'
                       AND ended IS NULL) AS hosts,
                   (SELECT array_agg(link_id) FROM reports WHERE kind = 'link'
                       AND ended IS NULL) AS links
              FROM service
            """
        )
        assert stored
        self._hosts, self._links = frozenset(stored["hosts"] or ()), frozenset(stored["links"] or ())
        self._version = stored["blocks"]

    def has_host(self, url: str) -> bool:
        """Return True if the host of a URL, or a domain that it belongs to, is blocked."""
        self.refresh()
        match = _HOST.match(url) if self._hosts else None
        if match is None:
            return False
        labels = match[1].split(".")
        return any(".".join(labels[first:]) in self._hosts for first in range(len(labels)))

    def without_urls(self, value: Any) -> Any:
        """Return a JSON value with "" in place of the texts that are URLs on blocked hosts."""
        match value:
            case str():
                return "" if self.has_host(value) else value
            case dict():
                return {name: self.without_urls(item) for name, item in value.items()}
            case list():
                return [self.without_urls(item) for item in value]
        return value

    def has_link(self, link_id: int, url: str) -> bool:
        return self.has_host(url) or link_id in self._links


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_blocked"] = Blocked()


def blocked() -> Blocked:
    of_app: Blocked = this_app().extensions["linkmgr_blocked"]
    return of_app
