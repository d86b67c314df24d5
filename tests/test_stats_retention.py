"""Statistics over time beyond the retention period."""

from collections.abc import Callable

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.reports import DAY, TODAY, date, refusal, report
from tests.support.visited import Store, Visited, purge


def test_visitors_are_null_beyond_the_retention_period_and_the_answer_says_why(
    free: Client, sql: Sql, store: Store
) -> None:
    link = factories.link(sql, free.id)
    store([Visited(link, TODAY - 80 * DAY), Visited(link, TODAY - 100 * DAY)])
    answer = report(free, "metrics=clicks,visitors&period=90d")
    assert answer["data"]["totals"] == {"clicks": 1, "visitors": 1}
    assert answer["meta"]["visitors_null_because"] is None
    answer = report(free, f"metrics=clicks,visitors&from={date(100)}")
    assert answer["data"]["totals"] == {"clicks": 2, "visitors": None}
    assert {row["visitors"] for row in answer["data"]["rows"]} == {None}
    assert answer["meta"]["source"] == "rollups"
    assert "detailed_since" in answer["meta"]["visitors_null_because"]
    assert answer["meta"]["detailed_since"][:10] in (date(90), date(89))
    assert report(free, "metrics=visitors,clicks&by=country&period=12mo&order=visitors")["data"]["rows"] == [
        {"country": "Germany", "visitors": None, "clicks": 2, "country_code": "DE"}
    ]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE users SET plan_id = (SELECT id FROM plans WHERE name = 'Business') WHERE id = %(id)s RETURNING 1",
        "UPDATE plans SET limits = jsonb_set(limits::jsonb, '{retention}', '0')::json WHERE name = 'Free' RETURNING 1",
    ],
)
def test_a_longer_retention_period_does_not_bring_back_purged_visits(
    *, app: Flask, free: Client, admin: Client, sql: Sql, store: Store, change: str
) -> None:
    link = factories.link(sql, free.id)
    store([Visited(link, TODAY - 80 * DAY), Visited(link, TODAY - 92 * DAY)])
    purge(app)
    limits = sql("SELECT limits::text FROM plans WHERE name = 'Free'")
    sql(change.replace("%(id)s", str(free.id)))
    try:
        for _ in range(2):
            for client, query in ((free, ""), (admin, "&user=all")):
                meta = report(client, f"from={date(95)}&metrics=clicks,visitors{query}")["meta"]
                assert (meta["source"], meta["detailed_since"][:10] in (date(90), date(89))) == ("rollups", True)
            assert report(free, "metrics=visitors&period=30d")["meta"]["source"] == "visits"
            purge(app)
    finally:
        sql("UPDATE plans SET limits = %(limits)s::json WHERE name = 'Free' RETURNING 1", **limits[0])


def test_a_longer_retention_period_keeps_visits_that_were_not_purged_yet(
    app: Flask, free: Client, sql: Sql, store: Store
) -> None:
    link = factories.link(sql, free.id)
    store([Visited(link, TODAY - 92 * DAY)])
    sql("UPDATE users SET plan_id = (SELECT id FROM plans WHERE name = 'Business') RETURNING 1")
    purge(app)
    answer = report(free, f"from={date(95)}&metrics=clicks,visitors")
    assert (answer["meta"]["detailed_since"], answer["data"]["totals"]["visitors"]) == (None, 1)


def test_a_purge_notes_the_users_in_batches_and_only_those_with_older_visits(
    app: Flask, sql: Sql, store: Store, register: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linkmgr.repository.purge.MAX_TRACKED", 2)
    links = [factories.link(sql, register(f"user{n}", plan="Free").id) for n in range(5)]
    store([Visited(link, TODAY - (10 if n == 3 else 92) * DAY) for n, link in enumerate(links)])
    purge(app)
    noted = sql("SELECT username FROM users WHERE detailed_since IS NOT NULL ORDER BY id")
    assert [row["username"] for row in noted] == ["user0", "user1", "user2", "user4"]


def test_a_longer_retention_period_changes_nothing_for_a_user_without_purged_visits(
    free: Client, admin: Client, sql: Sql
) -> None:
    plan = sql("SELECT id FROM plans WHERE name = 'Business'")[0]["id"]
    assert admin.put(f"/api/plan/{plan}/user/{free.id}", {"type": "lifetime"}).status_code == 200
    assert report(free)["meta"]["detailed_since"] is None


def test_visits_older_than_their_user_are_purged_for_good(
    app: Flask, free: Client, admin: Client, sql: Sql, store: Store
) -> None:
    """Imported visits can be older than the registration."""
    link = factories.link(sql, free.id)
    store([Visited(link, TODAY - 200 * DAY), Visited(link, TODAY - DAY)])
    purge(app)
    plan = sql("SELECT id FROM plans WHERE name = 'Business'")[0]["id"]
    assert admin.put(f"/api/plan/{plan}/user/{free.id}", {"type": "lifetime"}).status_code == 200
    answer = report(free, f"from={date(210)}&by=country&metrics=clicks,visitors")
    assert answer["data"]["totals"] == {"clicks": 2, "visitors": None}
    assert answer["meta"]["detailed_since"][:10] in (date(90), date(89))
    assert report(free, "period=30d&metrics=visitors")["data"]["totals"] == {"visitors": 1}


def test_two_dimensions_beyond_the_retention_period_are_refused(free: Client, sql: Sql, store: Store) -> None:
    for query in ("by=country,os", "by=country&os=iOS", "by=time:day&country=DE&os=iOS"):
        assert "The" not in refusal(free, f"{query}&from={date(100)}")[:3]
        assert "send a later from, or name only one dimension" in refusal(free, f"{query}&from={date(100)}")
    link = factories.link(sql, free.id)
    store([Visited(link, TODAY - 80 * DAY), Visited(link, TODAY - 100 * DAY)])
    answer = report(free, "by=country,os&period=all")
    assert answer["data"]["totals"] == {"clicks": 1}
    assert answer["meta"]["from"] >= answer["meta"]["detailed_since"][:10]


def test_visits_that_are_stored_after_their_retention_period_are_deleted_by_the_next_purge(
    app: Flask, free: Client, sql: Sql, store: Store
) -> None:
    link = factories.link(sql, free.id)
    store([Visited(link, TODAY - 92 * DAY), Visited(link, TODAY - DAY)])
    purge(app)
    for days in (300, 95, 91):
        store([Visited(link, TODAY - days * DAY)])
        assert sql("SELECT count(*) AS n FROM visits") == [{"n": 2}]
        purge(app)
        assert sql("SELECT count(*) AS n FROM visits") == [{"n": 1}]
    assert report(free, f"from={date(310)}")["data"]["totals"] == {"clicks": 5}
