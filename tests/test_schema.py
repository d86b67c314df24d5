"""The schema version: create, upgrade, refuse an older schema and serve a newer one."""

from collections.abc import Callable, Iterator
from threading import Timer

import psycopg2
import pytest
from click.testing import Result
from flask import Flask

import linkmgr
from linkmgr.core.database import migrations, session, statements
from linkmgr.core.database.statements import VERSION
from tests.conftest import ROOT
from tests.support.catalog import DEFINITIONS
from tests.support.schemas import execute

pytestmark = pytest.mark.slow

Connection = psycopg2.extensions.connection


def test_the_newest_migration_has_the_version_of_schema_sql(app: Flask, raw: Connection) -> None:
    numbers = [int(path.name[:4]) for path in migrations.MIGRATIONS.glob("*.sql")]
    assert session.schema_version(raw) == statements.VERSION == max(numbers, default=1)


def test_the_release_is_that_of_the_changelog_the_document_and_the_health_check(app: Flask) -> None:
    visitor = app.test_client()
    assert f"## {linkmgr.__version__}\n" in (ROOT / ".github/CHANGELOG.md").read_text()
    assert visitor.get("/api/openapi.json").get_json()["info"]["version"] == linkmgr.__version__
    assert visitor.get("/healthz").get_json() == {"error": 0, "version": linkmgr.__version__}


def test_an_upgraded_database_equals_a_new_one(
    empty: str, flask: Callable[..., Result], migrate: Callable[..., None]
) -> None:
    change = """
        CREATE TABLE shelves (id bigint PRIMARY KEY);
        CREATE TRIGGER kept AFTER DELETE ON shelves EXECUTE FUNCTION enqueue_cleanup();
        ALTER TABLE pixels ADD shelf bigint, ADD CHECK (shelf > 0);
        SELECT create_restricted_views(), create_noted_views();
    """
    flask("database", "create")
    migrate(shelves=change)
    assert flask("database", "upgrade").output == f"The database has schema {VERSION + 1}, which is up to date.\n"
    upgraded = execute(empty, DEFINITIONS)
    execute(empty, "DROP SCHEMA public, restricted_own, restricted_domains, noted CASCADE; CREATE SCHEMA public")
    execute(empty, f"{(ROOT / 'schema.sql').read_text()}; {change}; UPDATE service SET version = version + 1")
    assert execute(empty, DEFINITIONS) == upgraded


@pytest.mark.parametrize(
    "older",
    [
        "CREATE TABLE schema_version (version integer NOT NULL)",
        "{schema}; DROP TABLE public_statistics",
    ],
)
def test_a_database_from_before_the_first_release_is_refused_with_one_sentence(
    empty: str, fresh: Flask, flask: Callable[..., Result], older: str
) -> None:
    execute(empty, older.replace("{schema}", (ROOT / "schema.sql").read_text()))
    for command in ("check", "create", "upgrade"):
        refused = flask("database", command)
        assert refused.exit_code == 1
        assert refused.output == (
            "The database is older than release 1.0.0 and cannot be upgraded: export the account of each user with the "
            "program that made it, and import the exports into a new database with this one.\n"
        )
    assert fresh.test_client().get("/api/account").status_code == 503


def test_an_empty_database_is_created_once(flask: Callable[..., Result]) -> None:
    empty = flask("database", "check")
    assert (empty.exit_code, empty.output) == (1, "The database is empty: run 'flask --app app database create'.\n")
    for _ in range(2):
        made = flask("database", "create")
        assert (made.exit_code, made.output) == (0, f"The database has schema {VERSION}, which is up to date.\n")
    assert flask("database", "check").exit_code == 0


@pytest.fixture
def without_right(make_app: Callable[..., Flask], empty: str) -> Iterator[Callable[..., Result]]:
    """Run commands as a role that cannot create schemas in the database."""
    execute(empty, "CREATE ROLE humble LOGIN; GRANT CREATE ON SCHEMA public TO humble")
    app = make_app(database_url=empty.replace("postgres@", "humble@"))
    yield lambda *arguments: app.test_cli_runner().invoke(args=arguments)
    with app.app_context():
        statements.database().close_idle()
    execute(empty, "DROP OWNED BY humble; DROP ROLE humble")


def test_a_role_that_cannot_create_schemas_is_told_so(without_right: Callable[..., Result], empty: str) -> None:
    remedy = "Grant the role of the service CREATE on the database and on its schema public, then try again.\n"
    refused = without_right("database", "create")
    assert refused.exit_code == 1
    assert refused.output == (f"schema.sql failed and changed nothing: permission denied for database empty. {remedy}")
    execute(empty, "GRANT CREATE ON DATABASE empty TO humble")
    assert without_right("database", "create").exit_code == 0
    execute(empty, "REVOKE CREATE ON DATABASE empty FROM humble")
    assert remedy in without_right("database", "upgrade").output
    execute(empty, "GRANT CREATE ON DATABASE empty TO humble")
    assert without_right("database", "upgrade").exit_code == 0


def test_an_older_schema_is_not_served_and_the_error_names_the_command(
    fresh: Flask, flask: Callable[..., Result], migrate: Callable[..., None]
) -> None:
    flask("database", "create")
    migrate(shelves="CREATE TABLE shelves (id bigint);")
    answer = fresh.test_client().get("/api/account")
    assert answer.status_code == 503
    assert "flask --app app database upgrade" in answer.get_json()["message"]
    assert flask("database", "create").exit_code == 1
    assert flask("database", "check").exit_code == 1
    refused = flask("users", "key", "nobody")
    assert refused.exit_code == 1
    assert refused.output == (
        f"Error: The database has schema {VERSION} and needs {VERSION + 1}: run 'flask --app app database upgrade'.\n"
    )


def test_an_upgrade_takes_every_step_above_the_version(
    empty: str, fresh: Flask, flask: Callable[..., Result], migrate: Callable[..., None]
) -> None:
    flask("database", "create")
    migrate(
        shelves="CREATE TABLE shelves (id bigint); INSERT INTO shelves VALUES (1);",
        books="UPDATE shelves SET id = id + 1 WHERE '%' = '%';",
    )
    upgraded = flask("database", "upgrade")
    assert (upgraded.exit_code, upgraded.output) == (
        0,
        f"The database has schema {VERSION + 2}, which is up to date.\n",
    )
    assert execute(empty, "SELECT id, version FROM shelves, service") == [(2, VERSION + 2)]
    assert flask("database", "upgrade").exit_code == 0
    assert fresh.test_client().get("/healthz").status_code == 200


def test_a_failed_step_changes_nothing_and_keeps_the_previous_steps(
    empty: str, flask: Callable[..., Result], migrate: Callable[..., None]
) -> None:
    flask("database", "create")
    migrate(shelves="CREATE TABLE shelves (id bigint);", books="DROP TABLE shelves; SELECT 1 / 0;")
    failed = flask("database", "upgrade")
    assert failed.exit_code == 1
    assert failed.output.startswith(f"{VERSION + 2:04}_books.sql failed and changed nothing: division")
    assert execute(empty, "SELECT version, to_regclass('shelves')::text FROM service") == [(VERSION + 1, "shelves")]


def test_a_step_waits_for_locked_tables_without_blocking_others(
    empty: str, flask: Callable[..., Result], migrate: Callable[..., None]
) -> None:
    flask("database", "create")
    migrate(notes="ALTER TABLE users ADD note text;")
    holder = psycopg2.connect(empty)
    with holder.cursor() as cursor:
        cursor.execute("LOCK TABLE users IN ACCESS SHARE MODE")
    letting_go = Timer(0.6, holder.rollback)
    letting_go.start()
    assert flask("database", "upgrade").exit_code == 0
    letting_go.join()
    holder.close()


def test_a_step_whose_tables_stay_locked_fails_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch, empty: str, flask: Callable[..., Result], migrate: Callable[..., None]
) -> None:
    flask("database", "create")
    migrate(notes="ALTER TABLE users ADD note text;")
    monkeypatch.setattr(migrations, "_MAX_TRIES", 2)
    holder = psycopg2.connect(empty)
    with holder.cursor() as cursor:
        cursor.execute("LOCK TABLE users IN ACCESS SHARE MODE")
    failed = flask("database", "upgrade")
    assert failed.exit_code == 1
    assert "try again when there is less traffic" in failed.output
    holder.close()


def test_a_newer_schema_is_served(empty: str, fresh: Flask, flask: Callable[..., Result]) -> None:
    flask("database", "create")
    execute(empty, "UPDATE service SET version = 99")
    assert fresh.test_client().get("/healthz").status_code == 200
    assert flask("database", "check").exit_code == 0
