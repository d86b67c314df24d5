"""Database connections, and functions that execute one SQL statement.

    row, rows      read; retried once if the connection is lost
    run_repeatable write what may be written twice; retried likewise
    replica_row, replica_rows   read data that may lag, from the replica if there is one
    run, run_one   write and wait for the disk; never retried once the write may be committed
    run_repaired   likewise; executed again if what it violated has been repaired
    run_unsynced   write without waiting for the disk; a crash may lose it

Inside `transaction.lazily`, all but run_unsynced use its connection from the first write on.

Connections use autocommit, so that a statement is one round trip and one transaction. The last used
connection is used next, because its server process is in the processor's caches. A connection
prepares each statement on its first use, because planning costs more than executing. This requires
static SQL with named parameters.

No thread waits for a server that hangs: each statement has a deadline (deadlines.py). After one has
expired, another thread connects until that works. While even that takes long, statements fail at
once.
"""

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import orjson
import psycopg2
import psycopg2.extensions
from flask import Flask
from psycopg2 import errors as pg
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from linkmgr.core import metrics
from linkmgr.core.database import deadlines, embedded, session
from linkmgr.core.database.deadlines import Deadline, Server, TimedOut
from linkmgr.core.settings import settings, this_app

Row = dict[str, Any]
T = TypeVar("T")
MAX_BIGINT = 2**63 - 1

_SCHEMA = Path(__file__).parents[3] / "schema.sql"
VERSION = int(re.findall(r"^INSERT INTO service .* VALUES \((\d+)\)", _SCHEMA.read_text(), re.MULTILINE)[0])

_PARAMETER = re.compile(r"%\((\w+)\)s")
_DEADLOCK_TRIES = 3
# The statements of one message are one transaction, at whose end the setting expires.
UNSYNCED = "SET LOCAL synchronous_commit = off; "
NO_TIMEOUT = "SET LOCAL statement_timeout = 0; "


def timestamp(text: Any, _cursor: Any = None) -> str | None:
    """Return a time of PostgreSQL, of a column or in JSON, as YYYY-MM-DD HH:MM:SS in UTC."""
    return text[:19].replace("T", " ") if text else None


# Casts from PostgreSQL types to the JSON values of the specification
_TYPES = tuple(
    psycopg2.extensions.new_type(oids, name, cast)
    for name, oids, cast in (
        ("TIMESTAMP", psycopg2.extensions.PYDATETIMETZ.values, timestamp),
        ("DATE", psycopg2.extensions.PYDATE.values, psycopg2.extensions.UNICODE),
        ("NUMBER", psycopg2.extensions.DECIMAL.values, psycopg2.extensions.FLOAT),
        ("BYTES", psycopg2.BINARY.values, lambda text, _: text and bytes.fromhex(text[2:])),
        ("JSON", (114, 3802), lambda text, _: text and orjson.loads(text)),
    )
)


def register_types(connection: psycopg2.extensions.connection) -> psycopg2.extensions.connection:
    for type_ in _TYPES:
        psycopg2.extensions.register_type(type_, connection)
    return connection


class SchemaTooOld(psycopg2.OperationalError):
    """The database has an older schema than this program needs."""


@cache
def _prepared(sql: str) -> tuple[str, str]:
    names = list(dict.fromkeys(_PARAMETER.findall(sql)))
    name = f"s{abs(hash(sql)):x}"
    numbered = _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", sql).replace("%%", "%")
    values = ", ".join(f"%({parameter})s" for parameter in names)
    return f"PREPARE {name} AS {numbered}", f"EXECUTE {name}" + (f" ({values})" if names else "")


class Pooled(NamedTuple):
    connection: psycopg2.extensions.connection
    prepared: set[str]


class Executor(Protocol):
    @property
    def may_lag(self) -> bool: ...  # True if a replica may execute its reads

    def execute(self, sql: str, params: Row, *, idempotent: bool) -> list[Row]: ...

    def undoable(self) -> AbstractContextManager[None]: ...


# The transaction of the current request, if it has one (transaction.py), or the connections of a
# restricted key.
executor: ContextVar[Executor | None] = ContextVar("executor", default=None)


# Sent with writes if the default key of a user is not the actor that events name, or ""
acting: ContextVar[str] = ContextVar("acting", default="")


@contextmanager
def act_as(user_id: int, key_id: int | None) -> Iterator[None]:
    actor = json.dumps({"user": user_id, "key": key_id})
    acting.set(f"SET LOCAL linkmgr.actor = '{actor}'; ")
    try:
        yield
    finally:
        acting.set("")  # threads serve other requests in the same context


def act_as_sender(actor: Row | None) -> AbstractContextManager[None]:
    """Act as the one who asked for the work of a job: the actor of then, or None for the owner."""
    return act_as(actor["user"], actor["key"]) if actor else nullcontext()


class Database:
    may_lag = True
    # The deadline of a statement. The timeouts of the server are shorter and report a reason, but
    # none ends a commit that waits for a disk or a standby.
    seconds = 5.0

    def __init__(self, dsn: str, prepare: bool) -> None:
        self.dsn = dsn
        self.prepare = prepare
        self.options = session.OPTIONS | ({"options": session.STARTUP_OPTIONS} if prepare else {})
        self.prelude = "" if prepare else session.SET_LOCAL  # sent with every message
        self._idle: list[Pooled] = []
        self.server = Server(self._reconnect)
        self.reader: Database = self  # a replica of it, if there is one
        self.pools = [self]  # those of the same server, which lose their connections together

    def connect(self) -> psycopg2.extensions.connection:
        connection: psycopg2.extensions.connection = psycopg2.connect(self.dsn, **self.options)
        connection.autocommit = True
        return register_types(connection)

    def _open(self) -> Pooled:
        deadlines.start()
        with self.server.connecting():
            connection = self.connect()
        with Deadline(connection, self.seconds):
            version = session.schema_version(connection)
        if version < VERSION:
            connection.close()
            raise SchemaTooOld("run: flask --app app database upgrade")
        metrics.count("database_connections_opened")
        return Pooled(connection, set())

    @property
    def has_idle(self) -> bool:
        return bool(self._idle)

    def take(self, *, fresh: bool = False) -> Pooled:
        if self.server.is_hung:
            raise psycopg2.OperationalError("no connection can be made")
        try:
            return self._open() if fresh else self._idle.pop()
        except IndexError:
            return self._open()

    def give_back(self, pooled: Pooled) -> None:
        if pooled.connection.get_transaction_status() == TRANSACTION_STATUS_IDLE:
            self._idle.append(pooled)
        else:
            pooled.connection.close()

    def close_idle(self) -> None:
        for pool in self.pools:
            with suppress(IndexError):
                while True:
                    pool._idle.pop().connection.close()

    def lose(self, error: psycopg2.Error) -> None:
        """Close the connections that the error says are lost. One that hangs says nothing of the
        others."""
        if isinstance(error, TimedOut):
            self.server.suspect()
        else:
            self.close_idle()

    def _reconnect(self) -> None:
        try:
            self.give_back(self._open())
        except psycopg2.Error:
            self.close_idle()
            raise

    def execute_on(self, pooled: Pooled, sql: str, params: Row, prelude: str, end: str = "") -> list[Row]:
        """Execute a statement. `prelude` and `end` are sent in the same message. With an `end`,
        no rows are returned."""
        connection, prepared = pooled
        seconds = float("inf") if NO_TIMEOUT in prelude else self.seconds
        with connection.cursor() as cursor, Deadline(connection, seconds):
            if self.prepare:
                prepare, execute = _prepared(sql)
                if execute not in prepared:
                    cursor.execute(prepare)
                    prepared.add(execute)
                sql = execute
            cursor.execute(prelude + sql + end, params)
            if cursor.description is None:
                return []
            names = [column.name for column in cursor.description]
            return [dict(zip(names, values)) for values in cursor.fetchall()]  # noqa: B905 - strict is slower

    def _execute_once(self, sql: str, params: Row, prelude: str, *, fresh: bool = False) -> list[Row]:
        pooled = self.take(fresh=fresh)
        try:
            return self.execute_on(pooled, sql, params, self.prelude + prelude)
        finally:
            self.give_back(pooled)

    def execute(self, sql: str, params: Row, *, idempotent: bool, prelude: str = "") -> list[Row]:
        """Execute one statement. An `idempotent` statement is retried if the connection is lost
        before its deadline. Any statement is retried after a deadlock. `prelude` is sent with it in
        the same transaction."""
        deadlocks, fresh = 0, False
        prelude += "" if idempotent else acting.get()
        while True:
            try:
                return self._execute_once(sql, params, prelude, fresh=fresh)
            except pg.DeadlockDetected:
                deadlocks += 1
                if deadlocks == _DEADLOCK_TRIES:
                    raise
                time.sleep(random.uniform(0.01, 0.05))  # noqa: S311
            except pg.FeatureNotSupported:
                # "cached plan must not change result type": the schema has changed, and the
                # prepared statement was rejected before it did anything.
                self.close_idle()
                if fresh:
                    raise
                fresh = True
            except psycopg2.Error as error:
                if not session.is_connection_lost(error):
                    raise
                self.lose(error)
                if fresh or not idempotent or isinstance(error, TimedOut):
                    raise session.normalize_error(error) from error
                fresh = True

    def undoable(self) -> AbstractContextManager[None]:
        return nullcontext()  # a statement that fails is undone

    def read(self, sql: str, params: Row) -> list[Row]:
        return self.execute(sql, params, idempotent=True)


def init_app(app: Flask) -> None:
    dsn = settings().database_url or embedded.dsn(settings().folder / "postgres")
    primary = Database(dsn, settings().prepare)
    app.extensions["linkmgr_database"] = primary


def database() -> Database:
    primary: Database = this_app().extensions["linkmgr_database"]
    return primary


def rows(sql: str, **params: Any) -> list[Row]:
    return (executor.get() or database()).execute(sql, params, idempotent=True)


def row(sql: str, **params: Any) -> Row | None:
    return next(iter(rows(sql, **params)), None)


def replica_rows(sql: str, **params: Any) -> list[Row]:
    current = executor.get()
    if current is not None and not current.may_lag:
        return current.execute(sql, params, idempotent=True)
    return database().reader.read(sql, params)


def replica_row(sql: str, **params: Any) -> Row | None:
    return next(iter(replica_rows(sql, **params)), None)


def run_repeatable(sql: str, **params: Any) -> Row | None:
    return next(iter((executor.get() or database()).execute(sql, params, idempotent=True)), None)


def run(sql: str, **params: Any) -> Row | None:
    return next(iter((executor.get() or database()).execute(sql, params, idempotent=False)), None)


def undoable() -> AbstractContextManager[None]:
    """Undo what the block writes if it fails, so that the transaction of the request, if there is
    one, can go on. Use it where another try follows a failed statement."""
    current = executor.get()
    return current.undoable() if current else nullcontext()


def run_repaired(
    sql: str, repair: Callable[[psycopg2.IntegrityError, Row], bool], **params: Any
) -> Row | None:
    return repaired(partial(run, sql, **params), lambda violation: repair(violation, params))


def repaired(write: Callable[[], T], repair: Callable[[psycopg2.IntegrityError], bool]) -> T:
    """Write. If that violates a constraint, undo it, and repeat it if `repair` returns True."""
    try:
        with undoable():
            return write()
    except psycopg2.IntegrityError as violation:
        if not repair(violation):
            raise
        with undoable():
            return write()


def run_one(sql: str, **params: Any) -> Row:
    [written] = (executor.get() or database()).execute(sql, params, idempotent=False)
    return written


def run_unsynced(sql: str, **params: Any) -> Row | None:
    return next(iter(database().execute(sql, params, idempotent=False, prelude=UNSYNCED)), None)
