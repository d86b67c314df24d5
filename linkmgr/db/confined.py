"""Connections for API keys that may use only some rows of their user: see "Confined keys" in schema.sql."""

import copy
from collections.abc import Callable

from flask import Flask

from linkmgr.db import session
from linkmgr.db.statements import Database, database, executor
from linkmgr.settings import this_app

_SEARCH_PATHS = {False: "confined, public", True: "confined_own, confined, public"}  # by own_only
# Fails if the schema is missing: PostgreSQL would skip it in the search path, and use the tables.
_CHECK = "SELECT 'confined.links'::regclass; "


class ConfinedDatabase(Database):
    """A pool of its own, because the prepared statements and the plans of functions depend on the search path."""

    may_lag = False  # a replica has no settings of the key

    def __init__(self, primary: Database, on_connect: Callable[[], None], search_path: str) -> None:
        super().__init__(primary.dsn, primary.prepare, on_connect)
        primary.pools.append(self)
        self.pools = primary.pools
        if self.prepare:
            path = f" -c search_path={search_path.replace(' ', '')}"
            self.options = self.options | {"options": session.STARTUP_OPTIONS + path}
        else:
            self.prelude += f"SET LOCAL search_path = {search_path}; "

    def of_key(self, key_id: int, *, own_only: bool, domains: list[int] | None) -> "ConfinedDatabase":
        """Return the same pool with the settings of a key, which each statement sets for its transaction."""
        confined = copy.copy(self)
        ids = "" if domains is None else f"{{{','.join(map(str, domains))}}}"
        confined.prelude += (
            f"SET LOCAL linkmgr.key_id = '{key_id:d}'; SET LOCAL linkmgr.own_only = '{own_only}'; "
            f"SET LOCAL linkmgr.domains = '{ids}'; {_CHECK}"
        )
        return confined


def confine(key_id: int, *, own_only: bool, domains: list[int] | None) -> None:
    """Execute the statements of the current request in the schema `confined`."""
    pools: dict[bool, ConfinedDatabase] = this_app().extensions["linkmgr_confined"]
    executor.set(pools[own_only].of_key(key_id, own_only=own_only, domains=domains))


def _release(_error: BaseException | None) -> None:
    # Threads serve other requests in the same context.
    if executor.get() is not None:
        executor.set(None)


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_confined"] = {
        own_only: ConfinedDatabase(database(), database().on_connect, path) for own_only, path in _SEARCH_PATHS.items()
    }
    app.teardown_request(_release)
