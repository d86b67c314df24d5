"""Keys with `own_only` or `domains`: rows that they may not use do not exist for them."""

from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import statements, transaction
from linkmgr.features.scoped_keys import handlers as keys_api
from linkmgr.features.scoped_keys import restricted
from tests.conftest import BASE_URL, Client
from tests.support import factories, lists
from tests.support.bodies import LEAST
from tests.support.factories import Sql
from tests.support.keyring import OWNED, URL, Make, branded, code
from tests.support.operations import KEYED
from tests.support.races import at_once
from tests.support.resources import STORED
from tests.support.schemas import execute
from tests.support.worlds import Rows, World, ask, without_request_id

USES: Rows = {"idempotency_keys": []}  # which requests of a key change
OF_USERS = [call for call in KEYED if not call.operation.is_for_administrators]
RESTRICTED = {call.route.path for call in KEYED if call.operation.restricted and call.method == "GET"}
LISTS = {path: rows.key for path, rows in lists.LISTS.items() if path in RESTRICTED and "{" not in path}


# --- the schema


def test_every_table_that_restricted_keys_use_in_part_has_a_view(sql: Sql) -> None:
    """A view that selects from one of these needs a view of its own too."""
    views = sql(
        """
        SELECT table_schema::text AS schema, array_agg(table_name::text ORDER BY table_name) AS names
          FROM information_schema.views WHERE table_schema LIKE 'restricted%%' GROUP BY 1 ORDER BY 1
        """
    )
    names = ["binned_links", "channel_items", "kept_links", "kept_qrs", "link_details", "link_records", "links", "qrs",
             "tracked_rows", "usage"]  # fmt: skip
    assert views == [{"schema": f"restricted_{limit}", "names": names} for limit in ("domains", "own")]
    others = sql(
        """
        SELECT DISTINCT v.relname AS name FROM pg_depend d
          JOIN pg_rewrite r ON r.oid = d.objid
          JOIN pg_class v ON v.oid = r.ev_class AND v.relnamespace = 'public'::regnamespace
          JOIN pg_class t ON t.oid = d.refobjid AND t.relnamespace = 'public'::regnamespace
         WHERE t.relname = ANY (%(names)s) AND v.relname <> ALL (%(names)s)
        """,
        names=names,
    )
    assert others == []


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


def test_every_resource_is_a_word_of_scopes() -> None:
    assert all(f"`{kind.words.plural}`" in keys_api.SECTION.description for kind in STORED)


def test_restricted_keys_use_the_operations_of_links_and_codes_and_no_others() -> None:
    """The statements of an operation that is added here see the rows of the key only, or it refuses the others."""
    bulk, changes = {"bulk.addLinks", "bulk.updateLinks", "bulk.deleteLinks"}, {"create", "update", "delete"}
    links = {
        f"links.{name}"
        for name in ("list", "get", "listVisits", "listVisitsCsv", "restore", "check", "tryVisitor", "put", *changes)
    }
    codes = {f"qr.{name}" for name in ("list", "get", "listVisits", "listVisitsCsv")}
    both = (
        links
        | codes
        | bulk
        | {
            "conversions.create",
            "conversions.createBatch",
            "conversions.get",
            "stats.query",
            "stats.queryCsv",
            "campaigns.assign",
            "campaigns.unassign",
            "channels.assign",
            "channels.unassign",
        }
    )
    allowed = {
        limit: {call.operation.id for call in KEYED if limit in call.operation.restricted}
        for limit in ("own_only", "domains")
    }
    assert allowed == {
        "own_only": both | {f"qr.{name}" for name in ("restore", *changes)} | {"bulk.addQrs"},
        "domains": both,
    }


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
    client, before = Client(owner.http, added["key"]), dump() | USES
    for call in OF_USERS:
        ids = world.ids(call, "owner")
        answer = ask(client, call, ids)
        if limit not in call.operation.restricted:
            assert code(answer) == (403, "key_confined"), call
        elif call.rows:
            assert code(answer) in {(404, "missing"), (403, "key_confined")}, call
            missing = ask(client, call, [*ids[:-1], 2**62])
            assert without_request_id(answer) == without_request_id(missing), call
        elif call.path in LISTS:
            assert answer.get_json()["data"]["result"] == 0, call
        if call.method != "GET":
            after = dump()
            for table, rows in before.items():
                assert [row for row in rows if row not in after[table] and table != "usage_parts"] == [], (call, table)


@pytest.mark.parametrize("limit", ["own_only", "domains"])
def test_a_bulk_request_reaches_the_links_of_the_key_only(
    alice: Client, make_restricted: Make, sql: Sql, limit: str
) -> None:
    domain_id, domain = branded(sql, alice)
    client = make_restricted(alice, **({"own_only": True} if limit == "own_only" else {"domains": [domain_id]}))
    host, foreign = {"domain": domain} if limit == "domains" else {}, alice.add("/api/url/add", {"url": URL})
    sent = [{"url": URL} | host, {"url": f"{URL}/2", "custom": "mine"} | host, {"url": URL, "domain": BASE_URL}]
    results = client.post("/api/urls/bulk", {"urls": sent}).get_json()["results"]
    if limit == "domains":
        assert results[2]["code"] == "domain_needed"
    first, second = results[0]["id"], results[1]["id"]
    assert foreign not in {first, second}
    ids = [first, foreign, second]
    for body in ({"title": "New"}, {"campaign": factories.campaign(sql, alice.id)}, {"domain": BASE_URL}):
        results = client.put("/api/urls/bulk", {"ids": ids, "data": body}).get_json()["results"]
        refused = "domain_needed" if limit == "domains" and "domain" in body else None
        assert [result.get("code") for result in results] == [refused, "missing", refused], body
    assert client.put("/api/urls/bulk", {"ids": ids, "atomic": True, "data": {"title": "A"}}).status_code == 400
    assert alice.get(f"/api/url/{foreign}").get_json()["details"]["title"] != "New"
    assert client.post("/api/urls/bulk/delete", {"ids": ids}).get_json()["deleted"] == 2
    assert alice.get("/api/urls").get_json()["data"]["result"] == 1


def test_a_bulk_request_makes_codes_of_the_key(alice: Client, make_restricted: Make) -> None:
    client, other = make_restricted(alice, own_only=True), make_restricted(alice, own_only=True)
    body = {"qrs": [{"type": "text", "data": "Hello"}, {"type": "text", "data": "Hello again"}]}
    assert client.post("/api/qr/bulk", body).get_json()["created"] == 2
    assert [key.get("/api/qr").get_json()["data"]["result"] for key in (alice, client, other)] == [2, 2, 0]


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
        assert totals == [1, 1, 0], path
        assert len(first.get(path).get_json()["data"][key]) == totals[1]


def test_a_link_of_a_key_refers_to_all_rows_of_its_user(alice: Client, make_restricted: Make, sql: Sql) -> None:
    client = make_restricted(alice, own_only=True)
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    pixel, splash = factories.pixel(sql, alice.id), factories.splash(sql, alice.id)
    _, domain = branded(sql, alice)
    members = {"campaign": campaign, "channel": [channel], "pixels": [pixel], "type": str(splash), "domain": domain}
    link = client.add("/api/url/add", {"url": URL} | members)
    details = client.get(f"/api/url/{link}").get_json()["details"]
    assert {name: details[name] for name in members} == members
    assert code(client.put(f"/api/url/{link}/update", {"campaign": 2**40})) == (400, "campaign_unknown")


@pytest.mark.parametrize("limit", ["own_only", "domains"])
def test_a_key_assigns_its_links_only(alice: Client, make_restricted: Make, sql: Sql, limit: str) -> None:
    domain_id, domain = branded(sql, alice)
    client = make_restricted(alice, **({"own_only": True} if limit == "own_only" else {"domains": [domain_id]}))
    link = client.add("/api/url/add", {"url": URL} | ({"domain": domain} if limit == "domains" else {}))
    campaign, channel, foreign = (getattr(factories, row)(sql, alice.id) for row in ("campaign", "channel", "link"))
    for path in (f"/api/campaign/{campaign}/assign", f"/api/channel/{channel}/assign/links"):
        assert client.post(f"{path}/{link}").status_code == 200
        assert code(client.post(f"{path}/{foreign}")) == (404, "missing")
    assert client.delete(f"/api/channel/{channel}/assign/links/{link}").status_code == 200
    for kind in ("bio", "qr"):
        row_id = getattr(factories, kind)(sql, alice.id)
        assert code(client.post(f"/api/channel/{channel}/assign/{kind}/{row_id}")) == (403, "key_confined")


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
    client, foreign = make_restricted(alice, own_only=True), factories.qr(sql, alice.id)
    headers = {"Idempotency-Key": "once", "If-Match": alice.get(f"/api/qr/{foreign}").headers["ETag"]}
    changed = LEAST["qr"] | {"name": "New"}
    assert code(client.put(f"/api/qr/{foreign}/update", changed, headers=headers)) == (404, "missing")
    answers = [client.post("/api/qr/add", LEAST["qr"], headers={"Idempotency-Key": "add"}) for _ in range(2)]
    [added] = {answer.get_json()["id"] for answer in answers}
    etag = client.get(f"/api/qr/{added}").headers["ETag"]
    for status in (200, 412):
        answer = client.put(f"/api/qr/{added}/update", changed, headers={"If-Match": etag})
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
    with app.app_context(), restricted.restrict(1, own_only=True, domains=None), transaction.lazily(lambda: None):
        executor = statements.executor.get()
        assert executor
        assert not executor.may_lag


def test_plan_limits_count_the_rows_of_all_keys(on_plan: Callable[..., Client], make_restricted: Make) -> None:
    carol = on_plan(links="3")
    client = make_restricted(carol, own_only=True)
    for number in range(2):
        carol.add("/api/url/add", {"url": f"{URL}/{number}"})
    results = client.post("/api/urls/bulk", {"urls": [{"url": f"{URL}/{number}"} for number in range(2)]}).get_json()
    assert [result.get("code") for result in results["results"]] == [None, "plan_limit"]
    assert code(client.post("/api/url/add", {"url": f"{URL}/9"})) == (400, "plan_limit")
