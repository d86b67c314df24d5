"""A transaction that begins at the first write of a request.

Requests to other servers and password hashes come before the first write, so the transaction does
not wait for them. Nothing in it is retried: a failure undoes all of it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg2
from psycopg2 import errors as pg
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from linkmgr.core.database import session, statements
from linkmgr.core.database.deadlines import Deadline
from linkmgr.core.database.statements import Database, Pooled, Row, database, executor


class Transaction:
    """`on_begin` is called in the transaction before the first write."""

    def __init__(self, used: Database, on_begin: Callable[[], None]) -> None:
        self._database, self._on_begin = used, on_begin
        self._also_on_begin: list[Callable[[], None]] = []
        self._pooled: Pooled | None = None
        # BEGIN, savepoints and COMMIT go with other statements: each message is a round trip
        self._unsent = self._end = ""

    @property
    def began(self) -> bool:
        return self._pooled is not None

    @property
    def may_lag(self) -> bool:
        return not self.began and self._database.may_lag  # a replica does not see its writes

    def also_on_begin(self, call: Callable[[], None]) -> None:
        """Call this after `on_begin`, or at once if the transaction has begun."""
        if self.began:
            call()
        else:
            self._also_on_begin.append(call)

    def execute(self, sql: str, params: Row, *, idempotent: bool) -> list[Row]:
        """Execute a statement. After one fails, no other can be executed until `undo` or the end of
        `undoable`."""
        if self._pooled is None:
            if idempotent:
                return self._database.read(sql, params)
            self.begin()
        return self._send(sql, params)

    @contextmanager
    def undoable(self) -> Iterator[None]:
        if self._pooled is None:
            self.begin()
        self._unsent += "SAVEPOINT undoable; "
        try:
            yield
        except Exception:
            with suppress(psycopg2.Error):  # if the connection is lost, the first error says so
                self._send("ROLLBACK TO SAVEPOINT undoable; RELEASE SAVEPOINT undoable")
            raise
        self._unsent += "RELEASE SAVEPOINT undoable; "

    def begin(self, on_begin: Callable[[], None] | None = None) -> None:
        self._pooled = self._database.take()
        try:
            self._unsent = "BEGIN; " + self._database.prelude + statements.acting.get()
            (on_begin or self._on_begin)()
            for call in self._also_on_begin:
                call()
            self._unsent += "SAVEPOINT before_writes; "
        except Exception:
            self.close()
            raise

    def undo(self) -> None:
        self._send("ROLLBACK TO SAVEPOINT before_writes")

    def commit(self) -> None:
        self._send("COMMIT")

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Commit with the one statement of the block, which returns no rows."""
        self._end = "; COMMIT"
        yield

    def close(self) -> None:
        self._unsent = ""
        if self._pooled is not None:
            if self._pooled.connection.get_transaction_status() != TRANSACTION_STATUS_IDLE:
                with suppress(psycopg2.Error):
                    self._send("ROLLBACK")
            self._database.give_back(self._pooled)
            self._pooled = None

    def _send(self, sql: str, params: Row | None = None) -> list[Row]:
        assert self._pooled
        first, self._unsent = self._unsent, ""
        try:
            if params is not None:
                return self._database.execute_on(self._pooled, sql, params, first, self._end)
            connection = self._pooled.connection
            with connection.cursor() as cursor, Deadline(connection, self._database.seconds):
                cursor.execute(first + sql)
            return []
        except pg.FeatureNotSupported as error:  # the schema has changed; see Database.execute
            self._database.close_idle()
            self._pooled.connection.close()
            raise psycopg2.OperationalError(str(error)) from error
        except psycopg2.Error as error:
            if not session.is_connection_lost(error):
                raise
            self._database.lose(error)
            raise session.normalize_error(error) from error


@contextmanager
def lazily(on_begin: Callable[[], None]) -> Iterator[Transaction]:
    """Execute the statements of the block from its first write on in one transaction, which is
    rolled back at the end unless the block commits it."""
    current = executor.get()
    transaction = Transaction(current if isinstance(current, Database) else database(), on_begin)
    token = executor.set(transaction)
    try:
        yield transaction
    finally:
        executor.reset(token)
        transaction.close()


def on_begin(call: Callable[[], None]) -> None:
    """Call this when the transaction of the request begins, or now if the request has none."""
    current = executor.get()
    if isinstance(current, Transaction):
        current.also_on_begin(call)
    else:
        call()


@contextmanager
def in_transaction() -> Iterator[None]:
    """Execute the block, which writes at least once, in the transaction of the request, or in one
    of its own if the request has none."""
    if isinstance(executor.get(), Transaction):
        yield
        return
    with lazily(lambda: None) as writes:
        yield
        writes.commit()


def run_without(sql: str) -> None:
    """Execute a statement that no transaction may contain, such as VACUUM."""
    used = database()
    pooled = used.take()
    try:
        with pooled.connection.cursor() as cursor, Deadline(pooled.connection, used.seconds):
            cursor.execute(sql)
    finally:
        used.give_back(pooled)
