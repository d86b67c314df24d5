"""Deletes take effect immediately at the same cost for any size. Background jobs delete the dependent rows."""

from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import jobs
from tests.conftest import Client
from tests.support import factories
from tests.support.batches import BATCH, MANY, STATISTICS, VISITS
from tests.support.brands import fetch
from tests.support.factories import Sql
from tests.support.operations import KEYED
from tests.support.races import during
from tests.support.transactions import Costs
from tests.support.worlds import World

pytestmark = pytest.mark.slow

Connection = psycopg2.extensions.connection
Add = Callable[[str], int]

# For each kind of parent: the statement that makes all links refer to it, and one that finds those that do.
SPLASH = "UPDATE links SET type = 'splash', splash_id = %(id)s WHERE user_id = %(owner)s RETURNING 1"
OVERLAY = "UPDATE links SET type = 'overlay', overlay_id = %(id)s WHERE user_id = %(owner)s RETURNING 1"
CAMPAIGN = "UPDATE links SET campaign = %(id)s WHERE user_id = %(owner)s RETURNING 1"
CHANNEL = """
    INSERT INTO channel_items (user_id, channel_id, link_id)
    SELECT user_id, %(id)s, id FROM links WHERE user_id = %(owner)s RETURNING 1
"""
PARENTS = {
    "splash": (SPLASH, "SELECT FROM links WHERE splash_id = %(id)s OR type <> 'direct'"),
    "overlay": (OVERLAY, "SELECT FROM links WHERE overlay_id = %(id)s OR type <> 'direct'"),
    "campaign": (CAMPAIGN, "SELECT FROM links WHERE campaign = %(id)s"),
    "channel": (CHANNEL, "SELECT FROM channel_items WHERE channel_id = %(id)s"),
}


@pytest.fixture
def parent(sql: Sql, alice: Client, links: list[int]) -> Callable[[str], int]:
    """Create a row that all links of alice refer to."""

    def make(kind: str) -> int:
        made = factories.ALL[kind](sql, alice.id)
        sql(PARENTS[kind][0], id=made, owner=alice.id)
        return made

    return make


# --- rows that many links refer to


@pytest.mark.parametrize(
    ("kind", "members", "code"),
    [
        ("campaign", {"campaign": 0}, "campaign_unknown"),
        ("splash", {"type": ""}, "splash_unknown"),
        ("overlay", {"type": "overlay-"}, "overlay_unknown"),
    ],
)
def test_a_link_cannot_keep_a_deleted_row_by_sending_it_again(
    *, alice: Client, sql: Sql, parent: Add, kind: str, members: dict[str, object], code: str
) -> None:
    made = parent(kind)
    [link] = sql("SELECT id FROM links WHERE alias = 'link-1'")
    [(member, prefix)] = members.items()
    body = {member: f"{prefix}{made}" if isinstance(prefix, str) else made}
    assert alice.put(f"/api/url/{link['id']}/update", body).status_code == 200
    alice.delete(f"/api/{kind}/{made}/delete")
    refused = alice.put(f"/api/url/{link['id']}/update", body)
    assert (refused.status_code, refused.get_json()["code"]) == (400, code)
    assert alice.put(f"/api/url/{link['id']}/update", {"metatitle": "Changed"}).status_code == 200


@pytest.mark.parametrize("kind", PARENTS)
def test_a_parent_is_deleted_at_once_and_its_links_are_cleared_in_batches(
    *, app: Flask, alice: Client, sql: Sql, parent: Add, run_jobs: Callable[[], None], kind: str, costs: Costs
) -> None:
    made = parent(kind)
    spent = costs(lambda: alice.delete(f"/api/{kind}/{made}/delete"))
    assert max(cost.rows for cost in spent) < 100
    path = f"{kind}s" if kind in ("campaign", "channel") else kind
    assert alice.get(f"/api/{path}").get_json()["data"]["result"] == 0
    assert len(sql(PARENTS[kind][1], id=made)) == MANY, "the links were changed by the request"
    assert fetch(app, "/link-1").headers["Location"] == "https://example.com/"
    [listed] = alice.get("/api/urls?limit=1").get_json()["data"]["urls"]
    assert (listed["campaign"] or 0, listed["channel"]) == (0, [])

    spent = costs(run_jobs)
    assert len(spent) > MANY / 500
    assert max(cost.rows for cost in spent) < BATCH
    assert not any(cost.exclusive for cost in spent)
    assert sql(PARENTS[kind][1], id=made) == []
    assert sql("SELECT FROM jobs") == []
    assert len(sql("SELECT FROM links")) == MANY


def test_a_batch_skips_a_locked_link_and_returns_to_it(
    app: Flask, alice: Client, sql: Sql, raw: Connection, parent: Add
) -> None:
    made = parent("campaign")
    alice.delete(f"/api/campaign/{made}/delete")
    with raw.cursor() as cursor, app.app_context():
        cursor.execute("BEGIN; UPDATE links SET title = 'mine' WHERE alias = 'link-7'")
        for _ in range(MANY // 500 + 2):
            assert jobs.run_next(lambda _: True)
        assert sql("SELECT alias FROM links WHERE campaign IS NOT NULL") == [{"alias": "link-7"}]
        cursor.execute("COMMIT")
        while jobs.run_next(lambda _: True):
            pass
    assert sql("SELECT FROM links WHERE campaign IS NOT NULL") == []


def reference(kind: str, row_id: int) -> dict[str, Any]:
    members: dict[str, dict[str, Any]] = {
        "splash": {"type": str(row_id)},
        "overlay": {"type": f"overlay-{row_id}"},
        "pixel": {"pixels": [row_id]},
    }
    return members.get(kind, {kind: row_id})


@pytest.mark.parametrize("kind", ["splash", "overlay", "campaign", "channel", "pixel"])
def test_a_link_that_waits_for_the_delete_of_a_row_it_names_is_rejected(
    app: Flask, alice: Client, sql: Sql, raw: Connection, kind: str
) -> None:
    made = factories.ALL[kind](sql, alice.id)
    table = {"splash": "splash_pages"}.get(kind, f"{kind}s")
    sent = {"url": "https://example.com/"} | reference(kind, made)
    client = Client(app.test_client(), alice.key)
    answer = during(raw, f"DELETE FROM {table} WHERE id = {made}", lambda: client.post("/api/url/add", sent))
    assert (answer.status_code, answer.get_json()["code"]) == (400, f"{kind}_unknown")
    assert alice.get("/api/urls").get_json()["data"]["result"] == 0


@pytest.mark.parametrize(
    ("path", "kind", "member"),
    [
        ("/api/key/add", "domain", "domains"),
        ("/api/webhooks", "campaign", "campaign"),
        ("/api/webhooks", "channel", "channel"),
        ("/api/webhooks", "domain", "domain"),
    ],
)
def test_a_key_or_webhook_that_waits_for_the_delete_of_a_row_it_names_is_rejected(
    *, app: Flask, alice: Client, sql: Sql, raw: Connection, path: str, kind: str, member: str
) -> None:
    made = factories.ALL[kind](sql, alice.id)
    sent = {"name": "No. 1", "scopes": ["*"], "events": ["*"], member: [made] if member == "domains" else made}
    client = Client(app.test_client(), alice.key)
    answer = during(raw, f"DELETE FROM {kind}s WHERE id = {made}", lambda: client.post(path, sent))
    assert (answer.status_code, answer.get_json()["code"]) == (400, f"{member}_unknown")


@pytest.mark.parametrize("kind", ["splash", "overlay", "campaign", "channel", "pixel"])
def test_no_reference_of_a_link_crosses_users(alice: Client, bob: Client, sql: Sql, kind: str) -> None:
    members = reference(kind, factories.ALL[kind](sql, bob.id))
    link_id = factories.link(sql, alice.id)
    url = {"url": "https://example.com/"}
    answers = [
        alice.post("/api/url/add", url | members),
        alice.post("/api/urls/bulk", {"urls": [url | members]}),
        alice.put(f"/api/url/{link_id}/update", members),
        alice.put("/api/urls/bulk", {"ids": [link_id], "data": members}),
    ]
    bodies = [answer.get_json() for answer in answers]
    assert {body.get("results", [body])[0]["code"] for body in bodies} == {f"{kind}_unknown"}


def test_no_channel_has_a_link_of_another_user_even_by_sql(alice: Client, bob: Client, sql: Sql) -> None:
    factories.link(sql, alice.id)
    with pytest.raises(psycopg2.IntegrityError) as refused:
        sql(PARENTS["channel"][0], id=factories.channel(sql, bob.id), owner=alice.id)
    assert refused.value.diag.constraint_name == "channel_unknown"


# --- what a request that deletes does not know

DELETES = [call for call in KEYED if call.method == "DELETE" or call.operation.deletes]


def test_each_delete_with_an_unknown_parameter_or_member_deletes_nothing(world: World) -> None:
    assert {call.path for call in KEYED if "delete" in call.path.lower()} < {call.path for call in DELETES}
    for call in sorted(DELETES, key=lambda call: call.operation.id == "users.delete"):  # the owner
        world.made.clear()
        ids = world.ready_ids(call, "owner")
        actor = world.clients["administrator" if call.operation.is_for_administrators else "owner"]
        path, body = call.path_of(ids), ({"ids": [world.id("link", "owner")]} if call.operation.body else {})
        for query, sent in (("?forever=0", body), ("", body | {"forever": False}), ("", body | {"bin": None})):
            answer = actor.call(call.method, path + query, sent)
            [problem] = answer.get_json()["errors"]
            member = next(iter(sent.keys() - body.keys()), "forever")
            assert (answer.status_code, problem["field"], problem["code"]) == (400, member, "invalid"), call
            assert " of this operation; " in answer.get_json()["message"], call
        answer = actor.call(call.method, path, body)
        assert (answer.status_code, answer.get_json().get("failed", 0)) == (200, 0), (call, answer.text)


@pytest.mark.parametrize("data", [b"{}", b"[]", b"null", b"{", b"5", b"x" * (64 * 1024 + 1)])
def test_a_delete_ignores_a_body_without_members(alice: Client, sql: Sql, data: bytes) -> None:
    link = factories.link(sql, alice.id)
    headers = {"Content-Type": "application/json"}
    assert alice.delete(f"/api/url/{link}/delete", data=data, headers=headers).status_code == 200


# --- visits


def test_a_batch_does_not_read_the_visits_of_other_links(
    alice: Client, sql: Sql, raw: Connection, run_jobs: Callable[[], None], costs: Costs
) -> None:
    popular, link = factories.link(sql, alice.id), factories.link(sql, alice.id)
    sql(VISITS, id=popular, many=20_000)
    sql(VISITS, id=link, many=10)
    with raw.cursor() as cursor:
        cursor.execute("ANALYZE visits, visitors, tracked_rollups, totals")
    alice.delete(f"/api/url/{link}/delete")
    spent = costs(run_jobs)
    assert max(cost.rows for cost in spent) < 5_000  # a thousand labels, each read, found and deleted
    assert {visit["tracked_id"] for visit in sql(STATISTICS)} == {popular}


def test_a_link_with_many_visits_is_deleted_at_once_and_its_visits_in_batches(
    app: Flask, alice: Client, sql: Sql, one_batch: Callable[[], bool], costs: Costs
) -> None:
    link = factories.link(sql, alice.id)
    [named] = sql("SELECT alias FROM links")
    sql(VISITS, id=link, many=12_000)
    spent = costs(lambda: alice.delete(f"/api/url/{link}/delete"))
    assert max(cost.rows for cost in spent) < 100
    assert fetch(app, f"/{named['alias']}").status_code == 404
    assert alice.get(f"/api/url/{link}").status_code == 404
    again = alice.post("/api/url/add", {"url": "https://example.com/", "custom": named["alias"]})
    assert again.status_code == 200
    [listed] = alice.get("/api/urls").get_json()["data"]["urls"]
    assert listed["clicks"] == 0

    batches = 0
    while one_batch():
        batches += 1
    assert batches >= 12_000 / 5_000 * 2
    assert sql(STATISTICS) == []
    assert sql("SELECT FROM jobs") == []
