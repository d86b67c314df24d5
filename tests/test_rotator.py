"""/r/<slug>: a random link of a campaign, uniformly distributed."""

import re
from collections import Counter

import psycopg2
import pytest
from flask import Flask

from linkmgr.repository import public
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.explain import rows_read
from tests.support.factories import Sql
from tests.support.targets import statistics

LINKS, CALLS = 5, 1_000
# Chi-square with 4 degrees of freedom exceeds this value with a probability of one in a million.
MAX_CHI_SQUARE = 33.4


def fill(client: Client, sql: Sql, campaign_id: int, links: int) -> list[int]:
    ids = [factories.link(sql, client.id, url=f"https://example.com/{number}") for number in range(links)]
    factories.assign(sql, campaign_id, ids)
    return ids


@pytest.fixture
def rotator(alice: Client, sql: Sql) -> list[int]:
    """The links of a public campaign with the slug `spring`, next to another campaign with links."""
    other = alice.add("/api/campaign/add", {"slug": "other", "public": True})
    fill(alice, sql, other, 3)
    return fill(alice, sql, alice.add("/api/campaign/add", {"slug": "spring", "public": True}), LINKS)


def test_it_redirects_to_a_short_link_which_counts_the_click(app: Flask, sql: Sql, rotator: list[int]) -> None:
    answer = app.test_client().get("/r/spring")
    assert answer.status_code == 302
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Location"].startswith(f"{BASE_URL}/")
    target = app.test_client().get(answer.headers["Location"].removeprefix(BASE_URL)).headers["Location"]
    number = int(target.removeprefix("https://example.com/"))
    clicks = [statistics(sql, link_id)["clicks"] for link_id in rotator]
    assert clicks == [int(index == number) for index in range(LINKS)]


def test_many_requests_over_5_links_are_uniformly_distributed(app: Flask, rotator: list[int]) -> None:
    with app.app_context():
        chosen = Counter(found["id"] for _ in range(CALLS) if (found := public.random_link(None, "spring")))
    assert set(chosen) == set(rotator)
    expected = CALLS / LINKS
    assert sum((count - expected) ** 2 / expected for count in chosen.values()) < MAX_CHI_SQUARE


def test_expired_links_are_not_chosen_and_private_ones_are(app: Flask, rotator: list[int], sql: Sql) -> None:
    sql("UPDATE links SET expiry = now() WHERE id = ANY(%(ids)s) RETURNING 1", ids=rotator[2:])
    sql("UPDATE links SET status = 'private', expiry = now() + interval '1 hour' WHERE id = %(id)s RETURNING 1",
        id=rotator[0])  # fmt: skip
    with app.app_context():
        assert {(public.random_link(None, "spring") or {})["id"] for _ in range(60)} == set(rotator[:2])
    sql("UPDATE links SET expiry = now() RETURNING 1")
    assert app.test_client().get("/r/spring").status_code == 404


def test_a_campaign_that_is_not_public_or_empty_or_unknown_has_no_rotator(
    app: Flask, rotator: list[int], alice: Client, sql: Sql
) -> None:
    alice.add("/api/campaign/add", {"slug": "empty", "public": True})
    fill(alice, sql, alice.add("/api/campaign/add", {"slug": "private", "public": False}), 1)
    answers = [app.test_client().get(f"/r/{slug}") for slug in ("private", "empty", "unknown", "SPRING", "a%00b")]
    assert {answer.status_code for answer in answers} == {404}
    assert {answer.mimetype for answer in answers} == {"text/html"}
    pages = {re.sub(r'nonce="[^"]+"', "", answer.text) for answer in answers[:4]}
    assert len(pages) == 1, "a private campaign does not show that it exists"


def test_each_of_1000_links_can_be_chosen_if_some_are_far_newer(
    app: Flask, alice: Client, raw: psycopg2.extensions.connection
) -> None:
    campaign = alice.add("/api/campaign/add", {"slug": "old-and-new", "public": True})
    with raw.cursor() as cursor:
        for aliases in (range(300), range(300, 1000)):
            cursor.execute(
                "INSERT INTO links (user_id, campaign, alias, url)"
                " SELECT %s, %s, 'link' || n, 'https://example.com/' FROM unnest(%s) n ORDER BY n",
                [alice.id, campaign, [*aliases]],
            )
            cursor.execute("SELECT setval('tracked_ids', nextval('tracked_ids') + 1000000)")
    with app.app_context():
        chosen = [public.random_link(None, "old-and-new")["shorturl"] for _ in range(200)]
    assert any(int(url.rpartition("link")[2]) >= 900 for url in chosen)


@pytest.fixture
def large(rotator: list[int], raw: psycopg2.extensions.connection) -> list[int]:
    """The links of the campaign `spring`, to which 5,000 are added."""
    with raw.cursor() as cursor:
        cursor.execute(
            "INSERT INTO links (user_id, campaign, alias, url)"
            " SELECT user_id, campaign, 'new' || n, url FROM links, generate_series(1, 5000) n WHERE id = %s"
            " RETURNING id",
            [rotator[0]],
        )
        added = [link_id for (link_id,) in cursor.fetchall()]
        cursor.execute("ANALYZE links")
    return [*rotator, *added]


def test_each_link_of_a_large_campaign_can_be_chosen(
    app: Flask, dsn: str, large: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with app.app_context():
        chosen = {public.random_link(None, "spring")["id"] - large[0] for _ in range(200)}
        [read] = rows_read(monkeypatch, dsn, lambda: public.random_link(None, "spring"))
    assert {offset // 1000 for offset in chosen} >= {0, 1, 2, 3, 4}
    assert read < 2100


@pytest.mark.usefixtures("large")
def test_a_few_links_are_read_of_a_small_campaign_beside_a_large_one(
    app: Flask, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with app.app_context():
        [read] = rows_read(monkeypatch, dsn, lambda: public.random_link(None, "other"))
    assert read < 50


@pytest.mark.parametrize("kept", [slice(3), slice(-3, None)], ids=["oldest", "newest"])
def test_the_few_links_of_a_large_campaign_that_have_not_expired_are_chosen(
    app: Flask, large: list[int], sql: Sql, kept: slice
) -> None:
    sql("UPDATE links SET expiry = now() WHERE id <> ALL (%(ids)s) RETURNING 1", ids=large[kept])
    with app.app_context():
        assert {public.random_link(None, "spring")["id"] for _ in range(60)} == {*large[kept]}
