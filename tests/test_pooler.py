"""The service behind pgbouncer in transaction mode."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest
from flask import Flask
from psycopg2.errors import QueryCanceled

from linkmgr.core.database import jobs, migrations, session, statements
from linkmgr.core.database.statements import VERSION
from linkmgr.repository import purge
from tests.conftest import Client
from tests.support import factories, machines
from tests.support.clusters import ask
from tests.support.factories import Sql
from tests.support.keyring import URL, Make
from tests.support.races import at_once
from tests.support.targets import wait_until

pytestmark = pytest.mark.services

APPLIED = "SELECT name, setting FROM pg_settings WHERE lower(name) = ANY (%(names)s) ORDER BY name"


@pytest.fixture
def through(dsn: str, raw: psycopg2.extensions.connection, tmp_path: Path) -> Iterator[str]:
    """A pooler whose sessions wait for the disk, unlike those of other tests."""
    with raw.cursor() as cursor:
        cursor.execute("ALTER ROLE postgres SET synchronous_commit = on")
        with machines.pooler(dsn, tmp_path) as started:
            yield started
        cursor.execute("ALTER ROLE postgres RESET synchronous_commit")


@pytest.fixture
def pooled(make_app: Callable[..., Flask], app: Flask, through: str) -> Iterator[Flask]:
    made = make_app(database_url=through, prepare="0")
    yield made
    with made.app_context():
        statements.database().close_idle()


def test_session_settings_apply_directly_and_in_each_transaction_behind_the_pooler(app: Flask, pooled: Flask) -> None:
    applied = []
    for service in (app, pooled):
        with service.app_context():
            applied.append(statements.rows(APPLIED, names=[*session.SETTINGS]))
    assert applied[0] == applied[1]
    assert len(applied[0]) == len(session.SETTINGS)


def test_only_unsynced_writes_do_not_wait_for_the_disk(pooled: Flask) -> None:
    asked = "SELECT current_setting('synchronous_commit') AS now"
    with pooled.app_context():
        aside = statements.database().execute(asked, {}, idempotent=False, prelude=statements.UNSYNCED)
        assert [*aside, statements.run(asked)] == [{"now": "off"}, {"now": "on"}]


def test_the_limits_of_a_key_apply_to_its_transactions_only(pooled: Flask, alice: Client, make_key: Make) -> None:
    """The pooler gives the same few sessions to all requests."""
    own = make_key(alice, own_only=True)
    alice.add("/api/url/add", {"url": URL})
    own.add("/api/url/add", {"url": URL + "2"})

    def total(number: int) -> int:
        client = Client(pooled.test_client(), (alice, own)[number % 2].key)
        return int(client.get("/api/urls").get_json()["data"]["result"])

    assert at_once(100, total, threads=8) == [2, 1] * 50


def test_a_timeout_applies_to_its_transaction_only(pooled: Flask) -> None:
    with pooled.app_context():
        with pytest.raises(QueryCanceled):
            statements.database().execute(
                "SELECT pg_sleep(60)", {}, idempotent=False, prelude="SET LOCAL statement_timeout = 20; "
            )
        assert statements.row("SELECT pg_sleep(0.1)")


def test_a_read_survives_the_loss_of_the_poolers_server(
    pooled: Flask, dsn: str, raw: psycopg2.extensions.connection
) -> None:
    ending = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'advisory'"

    def read() -> list[statements.Row]:
        with pooled.app_context():
            asked, patient = "SELECT 1 AS one, pg_advisory_xact_lock(7)::text AS waited", migrations._NO_TIMEOUTS
            return statements.database().execute(asked, {}, idempotent=True, prelude=patient)

    def end() -> None:
        with raw.cursor() as cursor:
            wait_until(lambda: ask(dsn, ending) == "1")
            cursor.execute("SELECT pg_advisory_unlock(7)")

    with raw.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(7)")
    assert at_once(2, lambda number: end() if number else read(), threads=2)[0] == [{"one": 1, "waited": ""}]


def test_a_write_under_a_key_happens_once_and_waits_for_the_disk(
    pooled: Flask, register: Callable[..., Client], sql: Sql, raw: psycopg2.extensions.connection
) -> None:
    alice = register("alice", via=pooled)
    path, changes = f"/api/pixel/{factories.pixel(sql, alice.id)}/update", {"tag": "new"}
    with raw.cursor() as cursor:
        cursor.execute(
            """
            CREATE TABLE seen AS SELECT current_setting('synchronous_commit') AS synced,
                                        current_setting('lock_timeout') AS timeout LIMIT 0;
            CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit'), current_setting('lock_timeout'));
               RETURN NULL; END $$;
            CREATE TRIGGER note AFTER UPDATE ON pixels FOR EACH ROW EXECUTE FUNCTION note()
            """
        )
        try:
            responses = at_once(16, lambda _: alice.put(path, changes, headers={"Idempotency-Key": "a"}), threads=8)
            cursor.execute("SELECT synced, timeout FROM seen")
            assert cursor.fetchall() == [("on", "1500ms")]
        finally:
            cursor.execute("DROP FUNCTION note CASCADE; DROP TABLE seen")
    assert {response.status_code for response in responses} <= {200, 409}
    [row] = sql("SELECT version FROM pixels")
    for tag, status in (("1-a", 412), (f"{row['version']}-a", 200), (f"{row['version']}-a", 412)):
        assert alice.put(path, {"tag": "newer"}, headers={"If-Match": f'"{tag}"'}).status_code == status


def test_jobs_and_the_purge_work_through_it(pooled: Flask, alice: Client, sql: Sql) -> None:
    link = factories.link(sql, alice.id)
    sql("INSERT INTO totals VALUES (%(id)s, 1, 1) RETURNING 1", id=link)
    alice.delete(f"/api/url/{link}/delete")
    with pooled.app_context():
        while jobs.run_next(lambda _: False):
            pass
        assert sql("SELECT FROM totals") == sql("SELECT FROM jobs") == []
        assert purge.purge().visits == 0


def test_the_schema_is_created_and_upgraded_once_and_no_lock_remains(
    make_app: Callable[..., Flask], empty: str, through: str, migrate: Callable[..., None]
) -> None:
    pooled = make_app(database_url=through.replace("/linkmgr", "/empty"), prepare="0")
    created = pooled.test_cli_runner().invoke(args=["database", "create"])
    assert created.exit_code == 0, created.output
    migrate(shelves="CREATE TABLE shelves (id bigint); SELECT pg_sleep(0.1);")

    def upgrade(_: int) -> int:
        with pooled.app_context():
            migrations.upgrade(create=False)
            return migrations.current_version()

    assert at_once(2, upgrade, threads=2) == [VERSION + 1] * 2
    assert ask(empty, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0"


def test_a_dump_through_the_pooler_is_refused_because_it_would_change_shared_sessions(
    pooled: Flask, tmp_path: Path
) -> None:
    refused = pooled.test_cli_runner().invoke(args=["database", "backup", str(tmp_path / "dump")])
    assert refused.exit_code == 1
    assert "LINKMGR_PREPARE=1" in refused.output
    assert not (tmp_path / "dump").exists()
