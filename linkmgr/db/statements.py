"""Connections and the verbs of SQL.

    row, rows   read; asked again once when the connection was lost
    late_row    reads what may lag a little: from the replica, where there is one
    page        reads one page of a list, with its total, which may lag too
    run         writes; what the statement returns, once it is on the disk, and never asked again once it may have
                been stored

Connections are kept in autocommit, so that a statement is one round trip and one transaction.  The one that was
used last is used next: its server process is the one in the processor's caches.  Statements are prepared on it when
they are first run: planning costs more than executing.  Static SQL with named parameters is what makes that possible.
"""

import random
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import psycopg2
import psycopg2.extensions
from flask import Flask
from psycopg2 import errors as pg
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from linkmgr.db import embedded, session
from linkmgr.settings import settings, this_app

Row = dict[str, Any]

_SCHEMA = Path(__file__).parents[2] / "schema.sql"
VERSION = int(re.findall(r"^INSERT INTO schema_version VALUES \((\d+)\);", _SCHEMA.read_text(), re.MULTILINE)[0])

_NAMED = re.compile(r"%\((\w+)\)s")
_DEADLOCK_TRIES = 3
# Over with the transaction that the statements of a message are.
UNSYNCED = "SET LOCAL synchronous_commit = off; "


class SchemaTooOld(psycopg2.OperationalError):
    """The database was made by an older version of the service."""


@cache
def _prepared(sql: str) -> tuple[str, str]:
    """The PREPARE and the EXECUTE that stand for a statement with named parameters."""
    names = list(dict.fromkeys(_NAMED.findall(sql)))
    name = f"s{abs(hash(sql)):x}"
    numbered = _NAMED.sub(lambda match: f"${names.index(match[1]) + 1}", sql).replace("%%", "%")
    values = ", ".join(f"%({parameter})s" for parameter in names)
    return f"PREPARE {name} AS {numbered}", f"EXECUTE {name}" + (f" ({values})" if names else "")


class _Kept(NamedTuple):
    connection: psycopg2.extensions.connection
    prepared: set[str]


class Database:
    def __init__(self, dsn: str, prepare: bool, on_connect: Callable[[], None]) -> None:
        self.dsn = dsn
        self.on_connect = on_connect
        self.prepare = prepare
        self.options = session.OPTIONS | ({"options": session.SENT_ONCE} if prepare else {})
        self.prelude = "" if prepare else session.SENT_ALONG  # of every message
        self._unused: list[_Kept] = []

    def connect(self) -> psycopg2.extensions.connection:
        connection: psycopg2.extensions.connection = psycopg2.connect(self.dsn, **self.options)
        connection.autocommit = True
        return session.register_types(connection)

    def _open(self) -> _Kept:
        """A connection with a database behind it that this program knows how to use."""
        connection = self.connect()
        if session.version(connection) < VERSION:
            connection.close()
            raise SchemaTooOld("run: flask --app app database upgrade")
        self.on_connect()
        return _Kept(connection, set())

    def _take(self) -> _Kept:
        try:
            return self._unused.pop()
        except IndexError:
            return self._open()

    def drop(self) -> None:
        """Closes the connections that nobody uses."""
        with suppress(IndexError):
            while True:
                self._unused.pop().connection.close()

    def _once(self, sql: str, params: Row, prelude: str, *, fresh: bool = False) -> list[Row]:
        kept = connection, prepared = self._open() if fresh else self._take()
        try:
            with connection.cursor() as cursor:
                if self.prepare:
                    prepare, execute = _prepared(sql)
                    if execute not in prepared:
                        cursor.execute(prelude + prepare)
                        prepared.add(execute)
                    cursor.execute(prelude + execute, params)
                else:
                    cursor.execute(self.prelude + prelude + sql, params)
                if cursor.description is None:
                    return []
                names = [column[0] for column in cursor.description]
                return [dict(zip(names, values)) for values in cursor.fetchall()]  # noqa: B905 - a check for each row
        finally:
            if connection.get_transaction_status() == TRANSACTION_STATUS_IDLE:
                self._unused.append(kept)
            else:
                connection.close()

    def execute(self, sql: str, params: Row, *, again: bool, prelude: str = "") -> list[Row]:
        """Runs one statement.  `again`: it may be repeated after a lost connection, since it stores nothing
        that a second time would double.  A deadlock's victim stored nothing either way.  `prelude`: what is
        sent with it and is part of its transaction."""
        deadlocks, fresh = 0, False
        while True:
            try:
                return self._once(sql, params, prelude, fresh=fresh)
            except pg.DeadlockDetected:
                deadlocks += 1
                if deadlocks == _DEADLOCK_TRIES:
                    raise
                time.sleep(random.uniform(0.01, 0.05))  # noqa: S311
            except pg.FeatureNotSupported:
                # "cached plan must not change result type": the schema changed under a prepared statement, which was
                # refused before it did anything.
                self.drop()
                if fresh:
                    raise
                fresh = True
            except psycopg2.Error as error:
                if not session.is_connection_lost(error):
                    raise
                self.drop()
                if fresh or not again:
                    raise session.normalize_error(error) from error
                fresh = True

    def read(self, sql: str, params: Row) -> list[Row]:
        return self.execute(sql, params, again=True)


def init_app(app: Flask, on_connect: Callable[[], None]) -> None:
    """Prepare the connections. `on_connect` is called after each connection is opened."""
    dsn = settings().database_url or embedded.dsn(settings().folder / "postgres")
    primary = Database(dsn, settings().prepare == "1", on_connect)
    app.extensions["linkmgr_database"] = app.extensions["linkmgr_reader"] = primary


def database() -> Database:
    found: Database = this_app().extensions["linkmgr_database"]
    return found


def rows(sql: str, **params: Any) -> list[Row]:
    return database().execute(sql, params, again=True)


def row(sql: str, **params: Any) -> Row | None:
    found = rows(sql, **params)
    return found[0] if found else None


def _late_rows(sql: str, params: Row) -> list[Row]:
    reader: Database = this_app().extensions["linkmgr_reader"]
    return reader.read(sql, params)


def replica_row(sql: str, **params: Any) -> Row | None:
    found = _late_rows(sql, params)
    return found[0] if found else None


def run(sql: str, **params: Any) -> Row | None:
    """Writes, and gives the first row that the statement returns, once it is on the disk."""
    found = database().execute(sql, params, again=False)
    return found[0] if found else None


def run_unsynced(sql: str, **params: Any) -> Row | None:
    """Write without waiting for the disk, and return the first row.  A crash may lose the last such writes."""
    found = database().execute(sql, params, again=False, prelude=UNSYNCED)
    return found[0] if found else None


class Page(NamedTuple):
    """One page of a list: its rows, and how many the whole list has."""

    rows: list[Row]
    total: int
    limit: int
    number: int


def page(sql: str, total: str, *, limit: int, number: int, **params: Any) -> Page:
    """One page of a list.  `sql` reads it, in order, with LIMIT %(limit)s OFFSET %(offset)s where its rows are chosen;
    `total` is the SQL of how many the whole list has, one value, where none is 0.

    The total comes with the rows; only a page past the end, which has none, costs a second statement.
    """
    values = params | {"limit": limit, "offset": min((number - 1) * limit, 2**62)}
    counting = f"coalesce(({total}), 0) AS list_total"
    found = _late_rows(f"SELECT {counting}, listed.* FROM ({sql}) listed", values)  # noqa: S608 - static pieces
    counted = found or ([] if number == 1 else _late_rows(f"SELECT {counting}", params))
    length = counted[0]["list_total"] if counted else 0
    for each in found:
        del each["list_total"]
    return Page(found, length, limit, number)
