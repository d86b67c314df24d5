"""Reads for visitors, who wait neither for writes nor long for a primary that does not respond.

They use the connections of the primary with short deadlines. If the primary does not respond, they use the replica.
"""

from typing import Any

import psycopg2
from flask import Flask

from linkmgr.db import session
from linkmgr.db.connections import TimedOut
from linkmgr.db.replica import Replica
from linkmgr.db.statements import Database, Row, database
from linkmgr.settings import this_app


class Lookups(Database):
    seconds = 0.7

    def __init__(self, primary: Database, replica: Replica | None) -> None:
        super().__init__(primary.dsn, primary.prepare)
        self._idle, self._hosts, self.pools = primary._idle, primary._hosts, primary.pools
        self.replica = replica

    def look_up(self, sql: str, params: Row, *, can_wait: bool) -> list[Row]:
        """Read from the primary, else from the replica, else from the primary again if the visitor `can_wait`."""
        try:
            if self.server.is_suspect:
                raise TimedOut
            return self.execute(sql, params, idempotent=False)
        except psycopg2.Error as error:
            if not session.is_connection_lost(error):
                raise
            if self.replica and (rows := self.replica.read_alone(sql, params)):
                return rows
            if not can_wait:
                raise
        return self.execute(sql, params, idempotent=False)


def lookups() -> Lookups:
    instance: Lookups = this_app().extensions["linkmgr_lookups"]
    return instance


def public_row(sql: str, *, can_wait: bool = True, **params: Any) -> Row | None:
    return next(iter(lookups().look_up(sql, params, can_wait=can_wait)), None)


def init_app(app: Flask) -> None:
    reader = app.extensions["linkmgr_reader"]
    app.extensions["linkmgr_lookups"] = Lookups(database(), reader if isinstance(reader, Replica) else None)
