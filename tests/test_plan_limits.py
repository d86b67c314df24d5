"""Plan limits, enforced by the database: exact under concurrency, and correct after failures and deletes."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import statements
from linkmgr.repository import plans
from tests.conftest import Client
from tests.support import factories
from tests.support.bodies import LEAST
from tests.support.factories import Sql
from tests.support.own_plan import FEATURES
from tests.support.races import at_once

Limited = Callable[..., Client]

# By feature: the word of its paths, its table, and the table in messages
ROWS = {
    "pixels": ("pixel", "pixels", "pixels"),
    "domain": ("domain", "domains", "domains"),
    "splash": ("splash", "splash_pages", "splash pages"),
    "overlay": ("overlay", "overlays", "overlays"),
    "bundle": ("campaign", "campaigns", "campaigns"),
}
COUNTED = [feature for feature in ROWS if feature != "bundle"]  # a bundle has no count

over_features = pytest.mark.parametrize("feature", ROWS)
over_counted = pytest.mark.parametrize("feature", COUNTED)


@pytest.fixture
def limited(app: Flask, register: Callable[..., Client]) -> Limited:
    """Create a user whose plan has the feature with these members."""

    def make(feature: str, username: str = "carol", *, admin: bool = False, **members: str) -> Client:
        with app.app_context():
            limits = {"api": {"enabled": "1"}, feature: {"enabled": "1"} | members}
            plans.add(f"Of {username}", free=False, limits=limits)
        return register(username, plan=f"Of {username}", admin=admin)

    return make


def body(feature: str, number: int) -> dict[str, Any]:
    word, _, _ = ROWS[feature]
    return LEAST[word] | (
        {"domain": f"https://go{number}.example.com"} if word == "domain" else {"name": f"No. {number}"}
    )


def create(client: Client, feature: str, number: int) -> tuple[int, str]:
    answer = client.post(f"/api/{ROWS[feature][0]}/add", body(feature, number))
    return answer.status_code, answer.get_json().get("message", "")


def owned(sql: Sql, client: Client, feature: str) -> tuple[int, int]:
    """Return the number of rows that the user has, and the number in `usage`."""
    rows = sql(f"SELECT count(*) AS n FROM {ROWS[feature][1]} WHERE user_id = %(id)s", id=client.id)[0]["n"]
    kept = "SELECT coalesce(max(total), 0) AS total FROM usage WHERE user_id = %(user_id)s AND counted = %(counted)s"
    return rows, sql(kept, user_id=client.id, counted=ROWS[feature][1])[0]["total"]


def test_the_total_of_200_concurrent_creates_and_deletes_is_exact(app: Flask, limited: Limited, sql: Sql) -> None:
    carol = limited("pixels", count="0")

    def add_and_delete(number: int) -> None:
        client = Client(app.test_client(), carol.key)
        kept, deleted = (client.add("/api/pixel/add", body("pixels", number)) for _ in range(2))
        assert kept != deleted
        assert client.delete(f"/api/pixel/{deleted}/delete").status_code == 200

    at_once(200, add_and_delete, threads=20)
    assert owned(sql, carol, "pixels") == (200, 200)
    assert carol.get("/api/pixels").get_json()["data"]["result"] == 200


@pytest.fixture
def uncommitted(app: Flask, dsn: str) -> Iterator[Callable[[int], None]]:
    """Store a link in a transaction that stays open, on a connection with a part of `usage_parts` of its own."""
    connections: list[psycopg2.extensions.connection] = []

    def store(user_id: int) -> None:
        parts = "SELECT pid %% 32 AS part FROM pg_stat_activity WHERE datname = current_database() AND pid <> %(own)s"
        while True:
            connections.append(connection := psycopg2.connect(dsn))
            connection.autocommit = True
            with connection.cursor() as cursor, app.app_context():
                own = connection.info.backend_pid
                if own % 32 not in {row["part"] for row in statements.rows(parts, own=own)}:
                    insert = "INSERT INTO links (user_id, alias, url) VALUES (%s, 'open', '')"
                    cursor.execute(f"BEGIN; {insert}", (user_id,))  # one message, as the only statement of a create
                    return

    yield store
    for connection in connections:
        connection.close()


def test_creates_of_a_user_without_limits_do_not_wait_for_each_other(
    alice: Client, uncommitted: Callable[[int], None]
) -> None:
    uncommitted(alice.id)
    assert alice.post("/api/url/add", {"url": "https://example.com/"}).status_code == 200


def test_creates_of_a_user_far_from_a_limit_do_not_wait_for_each_other(
    limited: Limited, uncommitted: Callable[[int], None]
) -> None:
    carol = limited("links", count="100")
    uncommitted(carol.id)
    assert carol.post("/api/url/add", {"url": "https://example.com/"}).status_code == 200


def test_concurrent_creates_that_come_near_a_limit_never_exceed_it(app: Flask, limited: Limited, sql: Sql) -> None:
    carol = limited("pixels", count="130")
    answers = at_once(170, lambda n: create(Client(app.test_client(), carol.key), "pixels", n)[0], threads=40)
    assert Counter(answers) == {200: 130, 400: 40}
    assert owned(sql, carol, "pixels") == (130, 130)


@over_features
def test_a_feature_that_the_plan_lacks_is_refused(limited: Limited, sql: Sql, feature: str) -> None:
    carol = limited(feature, enabled="0", count="5")
    refusal = f"Your plan does not include {ROWS[feature][2]}. Ask an administrator for another plan."
    assert create(carol, feature, 1) == (403, refusal)
    assert owned(sql, carol, feature) == (0, 0)


@over_features
def test_a_count_of_0_means_unlimited(limited: Limited, feature: str) -> None:
    carol = limited(feature, count="0")
    assert Counter(create(carol, feature, number)[0] for number in range(20)) == {200: 20}


@over_counted
def test_deleting_a_row_allows_another(limited: Limited, sql: Sql, feature: str) -> None:
    carol = limited(feature, count="1")
    word, _, named = ROWS[feature]
    refusal = f"You have reached your plan's limit of 1 {named}. Delete one, or ask an administrator for another plan."
    for number in range(3):
        made = carol.add(f"/api/{word}/add", body(feature, number))
        assert create(carol, feature, 9) == (400, refusal)
        assert carol.delete(f"/api/{word}/{made}/delete").status_code == 200
        assert owned(sql, carol, feature) == (0, 0)


def test_each_user_has_a_separate_limit(limited: Limited) -> None:
    carol, dave = limited("pixels", count="1"), limited("pixels", "dave", count="1")
    assert [create(client, "pixels", 1)[0] for client in (carol, dave, carol)] == [200, 200, 400]


def test_rows_beyond_a_smaller_plan_are_kept_and_none_can_be_added(
    limited: Limited, alice: Client, admin: Client, sql: Sql
) -> None:
    for number in range(5):
        create(alice, "pixels", number)
    free = sql("SELECT id FROM plans WHERE name = 'Free'")[0]["id"]
    assert admin.put(f"/api/plan/{free}/user/{alice.id}", {"type": "monthly"}).status_code == 200
    assert create(alice, "pixels", 6)[0] == 400
    assert alice.get("/api/pixels").get_json()["data"]["result"] == 5


def test_an_expired_plan_has_the_limits_of_the_free_plan(alice: Client, sql: Sql) -> None:
    sql("UPDATE users SET expires = now() - interval '1 second'")
    assert [create(alice, "pixels", number)[0] for number in range(4)] == [200, 200, 200, 400]


# --- the totals that limits and lists read


def test_a_create_that_fails_is_not_counted(limited: Limited, sql: Sql) -> None:
    carol = limited("bundle")
    assert create(carol, "bundle", 1)[0] == 200
    assert [create(carol, "bundle", 1)[0] for _ in range(3)] == [400, 400, 400]
    assert owned(sql, carol, "bundle") == (1, 1)


def test_nothing_remains_of_a_deleted_user_and_others_keep_their_rows(
    alice: Client, bob: Client, admin: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    for client in (alice, bob):
        for feature in ROWS:
            create(client, feature, client.id)
        link_id = factories.link(sql, client.id)
        channel_id = client.add("/api/channel/add", {"name": "Shop"})
        assert client.post(f"/api/channel/{channel_id}/assign/links/{link_id}").status_code == 200
    assert admin.delete(f"/api/user/{alice.id}/delete").status_code == 200
    run_jobs()
    assert sql("SELECT counted, total FROM usage WHERE user_id = %(id)s AND total <> 1", id=bob.id) == []
    assert sql("SELECT DISTINCT user_id FROM usage") == [{"user_id": bob.id}]
    assert sql("SELECT DISTINCT user_id FROM channel_items") == [{"user_id": bob.id}]
    assert {owned(sql, bob, feature) for feature in ROWS} == {(1, 1)}
    assert {owned(sql, alice, feature) for feature in ROWS} == {(0, 0)}


def test_an_administrator_on_a_plan_without_features_has_no_limits(app: Flask, admin: Client, sql: Sql) -> None:
    off = {"enabled": "0", "count": "1"}
    limits = dict.fromkeys((*COUNTED, "bundle", "api", "export", *FEATURES), off) | {"links": 1, "clicks": 1}
    with app.app_context():
        plan_id = plans.add("Nothing", free=False, limits=limits, rate=1)
    assert admin.put(f"/api/plan/{plan_id}/user/{admin.id}", {"type": "monthly"}).status_code == 200
    for feature in ROWS:
        assert [create(admin, feature, number)[0] for number in range(3)] == [200] * 3
    for _, members in FEATURES.values():
        assert admin.post("/api/url/add", {"url": "https://example.com/"} | members).status_code == 200
    many = {"urls": [{"url": "https://example.com/", "custom": f"Summer-{number}"} for number in range(3)]}
    assert admin.post("/api/urls/bulk", many).get_json()["failed"] == 0
    assert admin.post("/api/bio/add", {"name": "Root", "alias": "Root-page"}).status_code == 200
    assert admin.get("/api/urls/export").status_code == 200
    assert int(admin.get("/api/account").headers["X-RateLimit-Limit"]) > 1
