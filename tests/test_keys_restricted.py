"""Keys with `own_only` or `domains`: rows that they may not use do not exist for them."""

from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr.db import restricted, statements, transaction
from linkmgr.resources.keys import Key
from linkmgr.resources.kinds import KINDS
from tests.conftest import Client
from tests.support import factories, lists
from tests.support.bodies import LEAST
from tests.support.factories import Sql
from tests.support.keyring import OWNED, URL, Make, branded, code
from tests.support.operations import KEYED
from tests.support.races import at_once
from tests.support.schemas import execute
from tests.support.worlds import Rows, World, ask

USES: Rows = {"idempotency_keys": []}  # which requests of a key change
OF_USERS = [call for call in KEYED if not call.operation.is_for_administrators]
RESTRICTED = {call.route.path for call in KEYED if call.operation.restricted}
LISTS = {path: rows.key for path, rows in lists.LISTS.items() if path in RESTRICTED and "{" not in path}
HIDDEN_BY_DOMAINS = {"link", "bio", "qr", "domain", "key"}  # unless they are of a domain of the key
LISTS_OF_DOMAINS = {"/api/urls": 0, "/api/bio": 0, "/api/qr": 0, "/api/domains": 1}  # the rows of the owner in them


# --- the schema


def test_every_table_of_users_is_restricted(sql: Sql) -> None:
    """A new table needs a view in both schemas, or must be known to be out of the reach of restricted keys."""
    unrestricted = {
        "sessions",  # for browsers
        "webhooks", "outbox", "outbox_owners", "events",  # whose blueprint refuses restricted keys
        "imports", "import_records", "import_rows",  # the same
        "account_rollups",  # read without a selection only, which restricted keys must send
        "usage_parts",  # which triggers write
        "logos",  # which codes and domains refer to by their hash
        "idempotency_keys",  # whose answers belong to a key
        "live_domains",  # compared with targets, and shown to no client
    }  # fmt: skip
    tables = sql(
        """
        SELECT c.relname AS name, to_regclass('restricted_domains.' || c.relname) IS NOT NULL AS restricted
          FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
         WHERE attname = 'user_id' AND c.relkind IN ('r', 'v') AND c.relnamespace = 'public'::regnamespace
        """
    )
    assert {table["name"] for table in tables if not table["restricted"]} == unrestricted, (
        "see schema.sql, Restricted keys"
    )


def test_every_restricted_view_has_all_columns_of_its_table(sql: Sql) -> None:
    missing = sql(
        """
        SELECT v.table_schema, t.table_name, t.column_name FROM information_schema.columns t
          JOIN information_schema.views v ON v.table_schema LIKE 'restricted%%' AND v.table_name = t.table_name
         WHERE t.table_schema = 'public' AND t.table_name <> 'usage'
           AND NOT EXISTS (SELECT FROM information_schema.columns c
                            WHERE c.table_schema = v.table_schema AND c.table_name = t.table_name
                              AND c.column_name = t.column_name)
        """
    )
    assert missing == []


def test_every_resource_is_a_word_of_scopes_and_known_to_restricted_keys() -> None:
    words = {kind.plural for kind in KINDS}
    assert {f"/api/{word}" for word in words} <= RESTRICTED
    assert all(f"`{word}`" in Key.about for word in words)


@pytest.mark.slow
def test_an_upgrade_adds_new_columns_to_the_restricted_views(
    empty: str, fresh: Flask, flask: Callable[..., Any], migrate: Callable[..., None]
) -> None:
    flask("database", "create")
    migrate(novel="ALTER TABLE links ADD COLUMN novel boolean;")
    assert flask("database", "upgrade").exit_code == 0
    names = (
        "SELECT count(*) FROM information_schema.columns"
        " WHERE table_schema LIKE 'restricted%' AND column_name = 'novel'"
    )
    assert execute(empty, names) == [(2,)]


@pytest.mark.parametrize("schema", ["restricted_own", "restricted_domains"])
def test_without_a_key_the_restricted_views_fail(sql: Sql, schema: str) -> None:
    with pytest.raises(Exception, match="unrecognized configuration parameter"):
        sql(f"SELECT count(*) FROM {schema}.links")


def test_without_the_views_a_restricted_key_is_refused(alice: Client, raw: psycopg2.extensions.connection) -> None:
    """PostgreSQL ignores a schema in the search path that does not exist."""
    added = alice.post("/api/key/add", {"name": "Own", "scopes": ["*"], "own_only": True}).get_json()
    headers = {"Authorization": f"Bearer {added['key']}"}
    assert alice.http.get("/api/urls", headers=headers).status_code == 200
    with raw.cursor() as cursor:
        cursor.execute("DROP SCHEMA restricted_own CASCADE")
        try:
            assert alice.http.get("/api/urls", headers=headers).status_code == 500
        finally:
            cursor.execute("SELECT create_restricted_views()")
    assert alice.http.get("/api/urls", headers=headers).status_code == 200


# --- own_only


@pytest.mark.parametrize("limit", ["own_only", "domains"])
def test_rows_outside_of_the_limits_of_a_key_do_not_exist(
    world: World, dump: Callable[[], Rows], sql: Sql, limit: str
) -> None:
    owner = world.clients["owner"]
    world.fill("owner")
    limits = {"own_only": True} if limit == "own_only" else {"domains": [branded(sql, owner)[0]]}
    added = owner.post("/api/key/add", {"name": "Limited", "scopes": ["*"]} | limits).get_json()
    hidden = {kind for call in OF_USERS for kind in call.rows} if limit == "own_only" else HIDDEN_BY_DOMAINS
    client, before = Client(owner.http, added["key"]), dump() | USES
    for call in OF_USERS:
        ids = world.ids(call, "owner")
        answer = ask(client, call, ids)
        if hidden.intersection(call.rows):
            assert code(answer) in {(404, "missing"), (403, "key_confined")}, call
            assert answer.data == ask(client, call, [2**62] * len(ids)).data, call
        elif call.path in LISTS and (limit == "own_only" or call.path in LISTS_OF_DOMAINS):
            assert answer.get_json()["data"]["result"] == LISTS_OF_DOMAINS.get(call.path, 0) * (limit == "domains"), (
                call
            )
        elif not call.path.endswith("/add") and (limit == "own_only" or answer.status_code != 200):
            assert code(answer) in {(403, "key_confined"), (403, "key_exceeded")}, call
        if call.method != "GET":
            after = dump()
            for table, rows in before.items():
                assert [row for row in rows if row not in after[table] and table != "usage_parts"] == [], (call, table)


def test_a_key_has_the_rows_that_it_made(alice: Client, make_restricted: Make) -> None:
    first, second = make_restricted(alice, own_only=True), make_restricted(alice, own_only=True)
    for word in OWNED:
        body = LEAST[word]
        row_id = first.add(f"/api/{word}/add", body)
        assert first.get(f"/api/{word}/{row_id}").status_code == 200
        assert second.get(f"/api/{word}/{row_id}").status_code == 404
        assert alice.get(f"/api/{word}/{row_id}").status_code == 200
        assert second.put(f"/api/{word}/{row_id}/update", body | {"name": "Changed"}).status_code == 404
        assert first.put(f"/api/{word}/{row_id}/update", body | {"name": "Changed"}).status_code == 200
        assert second.delete(f"/api/{word}/{row_id}/delete").status_code == 404
    for path, key in LISTS.items():
        totals = [client.get(path).get_json()["data"]["result"] for client in (alice, first, second)]
        assert totals == ([2, 0, 0] if key == "keys" else [1, 1, 0]), path
        assert len(first.get(path).get_json()["data"][key]) == totals[1]


def test_a_key_refers_to_its_own_rows_only(alice: Client, make_restricted: Make, sql: Sql) -> None:
    client = make_restricted(alice, own_only=True)
    make = {
        kind: getattr(factories, kind)(sql, alice.id) for kind in ("campaign", "pixel", "channel", "splash", "overlay")
    }
    _, domain = branded(sql, alice)
    references: dict[str, tuple[Any, str]] = {
        "campaign": (make["campaign"], "campaign_unknown"),
        "pixels": ([make["pixel"]], "pixel_unknown"),
        "channel": ([make["channel"]], "channel_unknown"),
        "type": (f"overlay-{make['overlay']}", "overlay_unknown"),
        "domain": (domain, "domain_unknown"),
    }
    link = client.add("/api/url/add", {"url": URL, "custom": "mine"})
    for member, (value, error) in references.items():
        assert code(client.post("/api/url/add", {"url": URL, member: value})) == (400, error)
        assert code(client.put(f"/api/url/{link}/update", {member: value})) == (400, error)
    assert code(client.post("/api/url/add", {"url": URL, "type": make["splash"]})) == (400, "splash_unknown")
    assert code(client.post(f"/api/campaign/{make['campaign']}/assign/{link}")) == (404, "missing")
    assert code(client.post(f"/api/channel/{make['channel']}/assign/links/{link}")) == (404, "missing")
    own = client.add("/api/channel/add", {"name": "Own"})
    assert client.post(f"/api/channel/{own}/assign/links/{link}").status_code == 200
    foreign = factories.link(sql, alice.id)
    assert code(client.post(f"/api/channel/{own}/assign/links/{foreign}")) == (404, "missing")
    alice.post(f"/api/channel/{own}/assign/links/{foreign}")
    assert [item["id"] for item in client.get(f"/api/channel/{own}").get_json()["data"]["items"]] == [link]
    campaign = client.add("/api/campaign/add", {"name": "Own"})
    assert client.post("/api/url/add", {"url": URL, "campaign": campaign, "channel": own}).status_code == 200


def test_a_key_shortens_a_url_of_another_key_once(alice: Client, make_restricted: Make, sql: Sql) -> None:
    client, other = make_restricted(alice, own_only=True), make_restricted(alice, own_only=True)
    existing = alice.add("/api/url/add", {"url": URL})
    clients = [Client(client.http.application.test_client(), client.key) for _ in range(4)]
    [link] = set(at_once(8, lambda n: clients[n % 4].add("/api/url/add", {"url": URL}), threads=4))
    assert link != existing == alice.add("/api/url/add", {"url": URL})
    assert other.add("/api/url/add", {"url": URL}) not in {link, existing}
    body = {"url": URL, "status": "public", "campaign": 0, "custom": ""}
    assert client.post("/api/url/add", body).get_json() == client.post("/api/url/add", {"url": URL}).get_json()
    client.put(f"/api/url/{link}/update", {"metatitle": "Mine"})
    changed = client.add("/api/url/add", {"url": URL})
    assert changed != link, "a changed link is not returned"
    alice.put(f"/api/url/{changed}/update", {"channel": factories.channel(sql, alice.id)})
    assert client.add("/api/url/add", {"url": URL}) not in {link, changed}


def test_repeated_and_conditional_requests_are_restricted_too(alice: Client, make_restricted: Make, sql: Sql) -> None:
    client, foreign = make_restricted(alice, own_only=True), factories.pixel(sql, alice.id)
    headers = {"Idempotency-Key": "once", "If-Match": alice.get(f"/api/pixel/{foreign}").headers["ETag"]}
    assert code(client.put(f"/api/pixel/{foreign}/update", {"tag": "2"}, headers=headers)) == (404, "missing")
    answers = [client.post("/api/pixel/add", LEAST["pixel"], headers={"Idempotency-Key": "add"}) for _ in range(2)]
    [added] = {answer.get_json()["id"] for answer in answers}
    etag = client.get(f"/api/pixel/{added}").headers["ETag"]
    for status in (200, 412):
        answer = client.put(f"/api/pixel/{added}/update", {"tag": "2"}, headers={"If-Match": etag})
        assert answer.status_code == status


def test_the_next_request_of_a_thread_is_not_restricted(app: Flask, alice: Client) -> None:
    added = alice.post("/api/key/add", {"name": "Own", "scopes": ["*"], "own_only": True}).get_json()
    alice.add("/api/url/add", {"url": URL})
    client = Client(alice.http, added["key"])
    for path in ("/api/urls", "/api/url/17", "/api/users", "/api/nothing", "/api/stats"):
        client.get(path)
        assert alice.get("/api/urls").get_json()["data"]["result"] == 1


def test_a_conditional_request_of_a_restricted_key_never_reads_a_replica(app: Flask) -> None:
    """A replica has neither the settings nor the search path of the key."""
    with app.test_request_context():
        restricted.restrict(1, own_only=True, domains=None)
        with transaction.lazily(lambda: None):
            executor = statements.executor.get()
            assert executor
            assert not executor.may_lag


def test_redirects_of_domains_are_checked_one_after_another(
    app: Flask, alice: Client, make_restricted: Make, raw: psycopg2.extensions.connection
) -> None:
    """The lock of all other keys is also that of a restricted key."""
    client = make_restricted(alice, own_only=True)
    raw.autocommit = False
    with raw, raw.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock('public.domains'::regclass::oid::bigint)")
        body = {"domain": "https://own.example.com", "redirectroot": URL}
        assert code(client.post("/api/domain/add", body)) == (503, "busy")


def test_plan_limits_count_the_rows_of_all_keys(register: Callable[..., Client], make_restricted: Make) -> None:
    alice = register("alice", plan="Free")
    client = make_restricted(alice, own_only=True)
    for _ in range(2):
        alice.add("/api/pixel/add", LEAST["pixel"])
    client.add("/api/pixel/add", LEAST["pixel"])
    assert code(client.post("/api/pixel/add", LEAST["pixel"])) == (400, "plan_limit")
