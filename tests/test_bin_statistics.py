"""Links in the bin keep their name, campaign, channels and domain in statistics."""

from collections.abc import Callable
from functools import partial

import psycopg2
import pytest
from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support import factories
from tests.support.explain import rows_read
from tests.support.factories import Sql
from tests.support.keyring import Make, branded
from tests.support.pages import get, seen, visit
from tests.support.reports import report, rows
from tests.support.visited import Store

Jobs = Callable[[], None]


@pytest.fixture
def sale(alice: Client, sql: Sql, store: Store) -> dict[str, int]:
    """A campaign, channel and domain with three visits of a link in the bin, and one of another link."""
    domain, url = branded(sql, alice)
    groups = {"campaign": factories.campaign(sql, alice.id), "channel": factories.channel(sql, alice.id)}
    body = {"domain": url, "campaign": groups["campaign"], "channel": [groups["channel"]]}
    binned, kept = (
        alice.add("/api/url/add", {"url": f"https://example.com/{name}", "custom": name} | body)
        for name in ("binned", "kept")
    )
    store([visit(binned, country="Peru", browser="Opera"), visit(binned), visit(binned), visit(kept)])
    sql("UPDATE links SET imported_clicks = 10 WHERE id = %(id)s RETURNING 1", id=binned)
    assert alice.delete(f"/api/url/{binned}/delete?bin=1").status_code == 200
    return groups | {"domain": domain, "binned": binned, "kept": kept}


@pytest.mark.parametrize("group", ["campaign", "channel", "domain"])
@pytest.mark.parametrize("query", ["metrics=clicks", "metrics=clicks,visitors", "metrics=clicks&country=Peru,Germany"])
def test_a_link_in_the_bin_counts_for_its_groups_in_the_api(
    *, alice: Client, sql: Sql, sale: dict[str, int], group: str, query: str
) -> None:
    label = sql("SELECT host FROM domains")[0]["host"] if group == "domain" else sale[group]
    counted = report(alice, f"by={group}&{query}")["data"]["rows"]
    assert {row[group]: row["clicks"] for row in counted} == {label: 4}
    chosen = report(alice, f"{group}={label}&by=target&{query}")["data"]
    assert {row["target"]: row["clicks"] for row in chosen["rows"]} == {sale["binned"]: 3, sale["kept"]: 1}
    assert chosen["totals"]["clicks"] == 4
    both = rows(alice, f"{group}={label}&by=country,browser&metrics=clicks")
    assert sorted((row["country"], row["browser"], row["clicks"]) for row in both) == [
        ("Germany", "Firefox", 3),
        ("Peru", "Opera", 1),
    ]


def test_a_campaign_and_a_channel_keep_the_clicks_of_a_link_in_the_bin(
    console: FlaskClient, alice: Client, sale: dict[str, int]
) -> None:
    for word, noun in (("campaigns", "click"), ("channels", "visit")):
        group = sale[word[:-1]]
        page = seen(get(console, f"/console/{word}/{group}"))
        assert f"4 {noun}s in the last 28 days" in page
        assert f"{noun}s 14 of which imported 10 unique visitors 2" in page
        assert "The figures above and below also count deleted links in the bin ." in page
        assert f"4 {noun}s" in seen(get(console, f"/console/{word}?period=28d"))
        alice.post(f"/api/url/{sale['binned']}/restore")
        assert "deleted link" not in seen(get(console, f"/console/{word}/{group}"))
        alice.delete(f"/api/url/{sale['binned']}/delete?bin=1")
    assert "4 clicks" in seen(get(console, "/console/domains?period=28d"))


def test_a_link_in_the_bin_is_named_until_it_is_deleted_forever(
    console: FlaskClient, alice: Client, sale: dict[str, int], run_jobs: Jobs
) -> None:
    paths = ("/console", "/console/statistics?dimension=target")
    for path in paths:
        page = get(console, path)
        row = page.partition("example.com/binned")[2].partition("</tr>")[0]
        assert "in the bin" in seen(row)
        assert page.count('href="/console/links/bin"><bdi>example.com/binned</bdi>') == 1
        assert f"/console/links/{sale['binned']}" not in page
        assert f"link={sale['binned']}" not in page
    file = get(console, f"{paths[1]}&format=csv")
    assert "\r\nexample.com/binned,https://" in file
    assert console.get(f"/console/statistics?link={sale['binned']}").status_code == 404
    alice.delete(f"/api/url/{sale['binned']}/delete")
    run_jobs()
    for path in paths:
        assert f"A deleted link or QR code, id {sale['binned']}" in get(console, path)
    assert {row["campaign"]: row["clicks"] for row in rows(alice, "by=campaign&metrics=clicks")} == {
        sale["campaign"]: 1,
        None: 3,
    }


def test_a_restricted_key_counts_its_own_links_in_the_bin_only(
    alice: Client, sale: dict[str, int], sql: Sql, make_restricted: Make
) -> None:
    mine = make_restricted(alice, domains=[sale["domain"]])
    assert rows(mine, f"campaign={sale['campaign']}&by=campaign&metrics=clicks")[0]["clicks"] == 4
    other = make_restricted(alice, domains=[branded(sql, alice)[0]])
    assert rows(other, f"campaign={sale['campaign']}&by=campaign&metrics=clicks") == []


def test_statistics_of_a_group_read_its_links_in_the_bin_only(
    *,
    alice: Client,
    sql: Sql,
    sale: dict[str, int],
    raw: psycopg2.extensions.connection,
    monkeypatch: pytest.MonkeyPatch,
    dsn: str,
) -> None:
    calls = [f"/api/stats?{group}={sale[group]}&by=time:day&metrics=clicks" for group in ("campaign", "channel")]

    def work() -> list[int]:
        return [sum(rows_read(monkeypatch, dsn, partial(alice.get, call))) for call in calls]

    before = work()
    with raw.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO binned_links
            SELECT other.*
              FROM generate_series(1, 5000) AS number, binned_links b,
                   jsonb_populate_record(b, jsonb_build_object(
                       'id', 1000000 + number, 'alias', 'many' || number, 'campaign', NULL, 'domain_id', NULL,
                       'channel_ids', '[]'::jsonb)) other;
            ANALYZE binned_links
            """
        )
    assert max(work()) <= max(before)
