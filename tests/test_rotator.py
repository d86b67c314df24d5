"""/r/<slug>: a random link of a campaign, uniformly distributed, in constant time."""

import re
from collections import Counter
from collections.abc import Callable

import psycopg2
import pytest
from flask import Flask

from linkmgr.db import statements
from linkmgr.repository import public
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.explain import rows_read
from tests.support.factories import Sql
from tests.support.targets import statistics

pytestmark = pytest.mark.slow

LINKS, CALLS = 5, 3_000
Large = Callable[..., list[int]]
# Chi-square with 4 degrees of freedom exceeds this value with a probability of one in a million.
MAX_CHI_SQUARE = 33.4


def fill(client: Client, sql: Sql, campaign_id: int, links: int) -> list[int]:
    ids = [factories.link(sql, client.id, url=f"https://example.com/{number}") for number in range(links)]
    for link_id in ids:
        assert client.post(f"/api/campaign/{campaign_id}/assign/{link_id}").status_code == 200
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


def test_a_single_link_is_always_chosen(app: Flask, alice: Client, sql: Sql) -> None:
    [only] = fill(alice, sql, alice.add("/api/campaign/add", {"slug": "single", "public": True}), 1)
    with app.app_context():
        assert {(public.random_link(None, "single") or {})["id"] for _ in range(20)} == {only}


def test_expired_links_are_not_chosen_and_private_ones_are(app: Flask, rotator: list[int], sql: Sql) -> None:
    sql("UPDATE links SET expires = now() WHERE id = ANY(%(ids)s) RETURNING 1", ids=rotator[2:])
    sql("UPDATE links SET public = false, expires = now() + interval '1 hour' WHERE id = %(id)s RETURNING 1",
        id=rotator[0])  # fmt: skip
    with app.app_context():
        assert {(public.random_link(None, "spring") or {})["id"] for _ in range(60)} == set(rotator[:2])
    sql("UPDATE links SET expires = now() RETURNING 1")
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


def test_a_campaign_that_becomes_private_has_no_rotator(app: Flask, alice: Client, sql: Sql) -> None:
    campaign = alice.add("/api/campaign/add", {"name": "Sale", "slug": "sale", "public": True})
    fill(alice, sql, campaign, 2)
    assert app.test_client().get("/r/sale").status_code == 302
    alice.put(f"/api/campaign/{campaign}/update", {"name": "Sale", "public": False})
    assert app.test_client().get("/r/sale").status_code == 404


def test_deleted_links_are_no_longer_chosen(app: Flask, rotator: list[int]) -> None:
    with app.app_context():
        statements.run("DELETE FROM links WHERE id = ANY(%(ids)s)", ids=rotator[1:])
        assert {(public.random_link(None, "spring") or {})["id"] for _ in range(20)} == {rotator[0]}


# --- large campaigns


@pytest.fixture
def large(alice: Client, sql: Sql, raw: psycopg2.extensions.connection) -> Large:
    """Add a number of links to a public campaign with the slug `large`."""
    campaign_id = alice.add("/api/campaign/add", {"slug": "large", "public": True})

    def add(links: int, *, live: int) -> list[int]:
        # The connections of the service have a time limit.
        with raw.cursor() as cursor:
            cursor.execute(
                """
                INSERT INTO links (user_id, campaign_id, alias, url, expires)
                SELECT %(user_id)s, %(campaign_id)s, 'large' || n, 'https://example.com/' || n,
                       CASE WHEN n %% (%(links)s / %(live)s) > 0 THEN now()
                            WHEN n %% 2 = 0 THEN now() + n * interval '1 hour' END
                  FROM generate_series(1, %(links)s) n;
                ANALYZE links
                """,
                {"user_id": alice.id, "campaign_id": campaign_id, "links": links, "live": live},
            )
        return [row["id"] for row in sql("SELECT id FROM links WHERE (expires > now()) IS NOT FALSE")]

    return add


def chi_square(app: Flask, ids: list[int], draws: int) -> float:
    with app.app_context():
        chosen = Counter((public.random_link(None, "large") or {})["id"] for _ in range(draws))
    assert set(chosen) <= set(ids)
    expected = draws / len(ids)
    return sum((chosen[link_id] - expected) ** 2 / expected for link_id in ids)


def test_each_of_many_links_is_equally_likely_among_expired_and_removed_ones(
    app: Flask, large: Large, sql: Sql
) -> None:
    large(1000, live=500)
    sql("DELETE FROM links WHERE id % 5 = 0 RETURNING 1")
    sql("UPDATE links SET campaign_id = NULL WHERE id % 5 = 1 RETURNING 1")
    ids = [
        row["id"]
        for row in sql("SELECT id FROM links WHERE campaign_id IS NOT NULL AND (expires > now()) IS NOT FALSE")
    ]
    assert 250 < len(ids) < 350
    # The standard deviation of chi-square with n degrees of freedom is the root of 2n.
    assert chi_square(app, ids, 5000) < len(ids) + 5 * (2 * len(ids)) ** 0.5


def test_the_few_links_that_have_not_expired_are_equally_likely(app: Flask, large: Large) -> None:
    ids = large(2000, live=4)
    assert chi_square(app, ids, 400) < MAX_CHI_SQUARE


@pytest.mark.parametrize("live", [20_000, 20])
def test_the_choice_among_20000_links_reads_few_of_them(
    app: Flask, dsn: str, large: Large, monkeypatch: pytest.MonkeyPatch, live: int
) -> None:
    large(20_000, live=live)

    def rotate() -> None:
        with app.app_context():
            assert public.random_link(None, "large")

    [read] = rows_read(monkeypatch, dsn, rotate)
    assert read < 2500
