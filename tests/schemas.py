"""A database that a test creates and upgrades by itself, and the migrations for it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest
from click.testing import Result
from flask import Flask

from linkmgr import database, schema

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
    """Makes the program one that needs the version of the last of these migrations."""

    def write(**migrations: str) -> None:
        monkeypatch.setattr(schema, "MIGRATIONS", tmp_path)
        for name, text in migrations.items():
            (tmp_path / f"{name.removeprefix('m')}.sql").write_text(text)
        for module in (schema, database):
            monkeypatch.setattr(module, "VERSION", int(max(migrations)[1:5]))

    return write
