"""Databases that are cleaned after a test, or created and upgraded by a test, and their migrations."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from click.testing import Result
from flask import Flask

from linkmgr.core.database import migrations, statements
from linkmgr.core.database.statements import VERSION

Connection = psycopg2.extensions.connection


def execute(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(statement)
        found = cursor.fetchall() if cursor.description else []
    connection.close()
    return found


@pytest.fixture
def empty(dsn: str, raw: Connection) -> Iterator[str]:
    """A database without tables."""
    with raw.cursor() as cursor:
        cursor.execute("CREATE DATABASE empty")
    yield dsn.replace("/linkmgr?", "/empty?")
    with raw.cursor() as cursor:
        cursor.execute("DROP DATABASE empty WITH (FORCE)")


@pytest.fixture
def drop_past_months(app: Flask, raw: Connection) -> Iterator[None]:
    """Drop the partitions of past months that the test creates."""
    yield
    with raw.cursor() as cursor:
        cursor.execute("SELECT drop_partition(partition, false) FROM partitions WHERE until <= now()")


@pytest.fixture
def fresh(make_app: Callable[..., Flask], empty: str) -> Iterator[Flask]:
    app = make_app(database_url=empty)
    yield app
    with app.app_context():
        statements.database().close_idle()


@pytest.fixture
def flask(fresh: Flask) -> Callable[..., Result]:
    return lambda *arguments: fresh.test_cli_runner().invoke(args=arguments)


@pytest.fixture
def migrate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Install these migrations, numbered from the next version on, after one that must not run again."""

    def write(**steps: str) -> None:
        monkeypatch.setattr(migrations, "MIGRATIONS", tmp_path)
        for number, (name, text) in enumerate({"applied": "this is no SQL", **steps}.items(), VERSION):
            (tmp_path / f"{number:04}_{name}.sql").write_text(text)
        for module in (migrations, statements):
            monkeypatch.setattr(module, "VERSION", VERSION + len(steps))

    return write


@pytest.fixture(scope="session")
def emptying(app: Flask) -> str:
    """Return the statements that restore the database, without foreign keys and triggers. DELETE is faster than
    TRUNCATE on small tables."""
    with app.app_context():
        tables = statements.rows(
            """
            SELECT relname FROM pg_class
             WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
               AND relname NOT IN ('service', 'plans')
            """
        )
    deletes = "".join(f"DELETE FROM {table['relname']}; " for table in tables)
    reset = "UPDATE service SET dropped_until = DEFAULT WHERE dropped_until > '-infinity'; "
    kept = "DELETE FROM plans WHERE name NOT IN ('Free', 'Pro', 'Business'); "
    return f"SET LOCAL session_replication_role = replica; {deletes}{reset}{kept}"


@pytest.fixture(autouse=True)
def _empty(request: pytest.FixtureRequest) -> Iterator[None]:
    emptying = request.getfixturevalue("emptying") if "app" in request.fixturenames else ""
    yield
    if emptying:
        app: Flask = request.getfixturevalue("app")
        with app.app_context():
            statements.database().execute("SELECT 1", {}, idempotent=True, prelude=emptying)
        app.extensions["linkmgr_missing_paths"]._counts.clear()
