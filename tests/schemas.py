"""Databases that a test creates and upgrades by itself, and migrations for them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest
from click.testing import Result
from flask import Flask

from linkmgr import database, schema
from linkmgr.database import VERSION

Connection = psycopg2.extensions.connection


@pytest.fixture
def empty(dsn: str, raw: Connection) -> Iterator[str]:
    """A database without tables."""
    with raw.cursor() as cursor:
        cursor.execute("CREATE DATABASE empty")
    yield dsn.replace("/linkmgr?", "/empty?")
    with raw.cursor() as cursor:
        cursor.execute("DROP DATABASE empty WITH (FORCE)")


@pytest.fixture
def fresh(make_app: Callable[..., Flask], empty: str) -> Iterator[Flask]:
    app = make_app(database_url=empty)
    yield app
    with app.app_context():
        database.database().drop()


@pytest.fixture
def flask(fresh: Flask) -> Callable[..., Result]:
    return lambda *arguments: fresh.test_cli_runner().invoke(args=arguments)


@pytest.fixture
def migrate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Give the program these migrations, numbered from its next version on, after one that it must not run again."""

    def write(**migrations: str) -> None:
        monkeypatch.setattr(schema, "MIGRATIONS", tmp_path)
        for number, (name, text) in enumerate({"applied": "this is no SQL", **migrations}.items(), VERSION):
            (tmp_path / f"{number:04}_{name}.sql").write_text(text)
        for module in (schema, database):
            monkeypatch.setattr(module, "VERSION", VERSION + len(migrations))

    return write


@pytest.fixture
def flushing(dsn: str, raw: Connection) -> Iterator[str]:
    """A server where new connections wait for the disk, which that of the tests does not have them do."""
    with raw.cursor() as cursor:
        cursor.execute("ALTER ROLE postgres SET synchronous_commit = on")
        yield dsn
        cursor.execute("ALTER ROLE postgres RESET synchronous_commit")
