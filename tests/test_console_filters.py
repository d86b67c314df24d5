"""The statistics of the console: each row filters them, and what is shown is a file too."""

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.features.statistics import results
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, seen, visit
from tests.support.reports import report
from tests.support.visited import Store


@pytest.fixture
def link(alice: Client, sql: Sql, store: Store) -> int:
    """A link titled Sale with visits of Germany, Peru and France."""
    link_id = factories.link(sql, alice.id, title="Sale")
    store([visit(link_id, country="Germany", browser="Firefox") for _ in range(20)])
    store([visit(link_id, country="Peru", browser="Chrome"), visit(link_id, country="Peru", browser="Firefox")])
    store([visit(link_id, country="France, South", browser="Chrome")])
    return link_id


def rows(browser: FlaskClient, query: str) -> list[list[str]]:
    """Return the rows of the table, from its file."""
    answer = browser.get(f"/console/statistics?{query}&format=csv")
    assert answer.mimetype == "text/csv"
    return [line.split(",") for line in answer.text.splitlines()[1:]]


def test_a_row_of_a_link_leads_to_its_statistics_with_a_chip(console: FlaskClient, link: int) -> None:
    page = get(console, f"/console/links/{link}")
    url = f"/console/statistics?dimension=referrer&amp;country=Peru&amp;link={link}&amp;period=28d"
    assert f'<a href="{url}"><bdi>Peru (PE)</bdi></a>' in page
    assert f'<a href="/console/statistics?dimension=browser&amp;link={link}&amp;period=28d">Show all' in page
    page = get(console, url.replace("&amp;", "&"))
    assert "2 clicks, 1 unique visitor in the last 28 days" in page
    assert seen(page).count("remove this filter") == 2
    assert "Countries: Peru (PE)" in seen(page)
    assert (
        f'<a class="chip" href="/console/statistics?link={link}&amp;dimension=referrer&amp;period=28d&amp;by=day"'
        in page
    )


def test_filters_and_the_second_dimension_count_as_the_api_does(console: FlaskClient, alice: Client, link: int) -> None:
    query = f"link={link}&country=peru&dimension=browser"
    assert rows(console, query) == [["Chrome", "1", "1"], ["Firefox", "1", "1"]]
    found = rows(console, f"link={link}&dimension=country&second=browser&country=Peru")
    api = report(alice, f"ids={link}&by=country,browser&country=Peru&metrics=clicks,visitors")["data"]["rows"]
    assert found == [
        [f"{row['country']} (PE)", row["browser"], str(row["clicks"]), str(row["visitors"])] for row in api
    ]


def test_the_clicks_of_the_account_are_compared_with_the_time_before(
    console: FlaskClient, alice: Client, sql: Sql, store: Store
) -> None:
    link_id = factories.link(sql, alice.id)
    store([visit(link_id, days) for days in range(25)] + [visit(link_id, 40) for _ in range(20)] + [visit(link_id, 60)])
    for query in ("", "?dimension=target"):
        page = get(console, f"/console/statistics{query}")
        assert "25 visits in the last 28 days, 25 % more than before" in page
        assert "The period before</span>" in page


@pytest.mark.parametrize("period", ["7d", "12mo", "last-week"])
def test_the_line_of_visitors_is_beside_the_clicks(console: FlaskClient, link: int, period: str) -> None:
    page = get(console, f"/console/statistics?link={link}&period={period}")
    assert ("23 clicks, 1 unique visitor" in page) == (period != "last-week")
    assert ("Unique visitors</span>" in page) == (period != "last-week")


def test_the_account_campaigns_channels_and_codes_have_the_same_page(
    console: FlaskClient, alice: Client, sql: Sql, store: Store, link: int
) -> None:
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    code = factories.qr(sql, alice.id)
    store([visit(code, country="Chile")])
    sql("UPDATE links SET campaign = %(id)s RETURNING 1", id=campaign)
    alice.post(f"/api/channel/{channel}/assign/links/{link}")
    assert rows(console, "dimension=country")[0] == ["Germany (DE)", "20"]
    assert len(rows(console, "dimension=country")) == 4
    for kind, row_id, countries in (("campaign", campaign, 3), ("channel", channel, 3), ("qr", code, 1)):
        assert len(rows(console, f"{kind}={row_id}")) == countries, kind
        path = {"qr": "qrs"}.get(kind, f"{kind}s")
        assert f'<p class="back"><a href="/console/{path}/{row_id}">' in get(
            console, f"/console/statistics?{kind}={row_id}"
        )
        assert "/console/statistics?" in get(console, f"/console/{path}/{row_id}")


def test_campaigns_channels_and_domains_are_dimensions_that_lead_to_their_links(
    console: FlaskClient, alice: Client, sql: Sql, store: Store, link: int
) -> None:
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    factories.domain(sql, alice.id)
    [host] = sql("SELECT host FROM domains")
    branded = {"url": "https://example.com/", "domain": host["host"], "campaign": campaign, "channel": channel}
    store([visit(alice.add("/api/url/add", branded)), visit(factories.qr(sql, alice.id), kind="scan")])
    for dimension, label, selected in (
        ("campaign", "Campaign ", campaign),
        ("channel", "Channel ", channel),
        ("domain", host["host"], host["host"]),
    ):
        table = dict(rows(console, f"dimension={dimension}"))
        rest = {"127.0.0.1": "23", "No domain": "1"} if dimension == "domain" else {f"No {dimension}": "24"}
        assert {name: clicks for name, clicks in table.items() if not name.startswith(label)} == rest
        [clicks] = [clicks for name, clicks in table.items() if name.startswith(label)]
        page = get(console, f"/console/statistics?dimension={dimension}")
        url = f"/console/statistics?dimension=target&amp;period=28d&amp;by=day&amp;{dimension}={selected}"
        assert (clicks, f'<a href="{url}">' in page) == ("1", True)
        chosen = f"{dimension}={selected}&dimension=target"
        assert len(rows(console, chosen)) == 1
        times = rows(console, f"{chosen}&table=time&by=week")
        assert ([row[1] for row in times][-1], len(times) in (4, 5)) == ("1", True)  # 28 days
    visits = get(console, f"/console/links/{link}/visits.csv").splitlines()
    assert (visits[0].split(",")[:2], len(visits)) == (["time (UTC)", "country"], 24)


@pytest.mark.parametrize(
    ("most", "counted"), [(results.MAX_VISIT_DAYS, "23 clicks, 1 unique visitor in"), (27, "23 clicks in")]
)
def test_visitors_of_a_campaign_and_a_channel_are_counted_unless_it_has_many_links(
    *,
    console: FlaskClient,
    alice: Client,
    sql: Sql,
    link: int,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    counted: str,
) -> None:
    monkeypatch.setattr(results, "MAX_VISIT_DAYS", most)
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    sql("UPDATE links SET campaign = %(id)s RETURNING 1", id=campaign)
    alice.post(f"/api/channel/{channel}/assign/links/{link}")
    for query in (f"campaign={campaign}", f"channel={channel}", f"campaign={campaign}&country=Peru"):
        page = seen(get(console, f"/console/statistics?{query}"))
        assert ("A visitor of two links counts twice." in page) == ("visitor" in counted)
        shown = counted.replace("clicks", "visits") if "channel" in query else counted  # a channel has codes too
        assert (shown.replace("23", "2") if "Peru" in query else shown) in page


def test_all_labels_are_shown_and_searched(console: FlaskClient, alice: Client, sql: Sql, store: Store) -> None:
    link_id = factories.link(sql, alice.id)
    store([visit(link_id, referrer=f"{number}.example.com") for number in range(60)])
    page = get(console, "/console/statistics?dimension=referrer")
    assert "1 to 50 of 60" in seen(page)
    assert "59.example.com" in get(console, "/console/statistics?dimension=referrer&page=2")
    page = get(console, "/console/statistics?dimension=referrer&q=7.EXAMPLE")
    assert page.count(".example.com</bdi>") == 6
    assert len(rows(console, "dimension=referrer&q=7.example")) == 6
    assert "No row has this text." in get(console, "/console/statistics?dimension=referrer&q=nowhere")


def test_a_chart_without_visitors_has_one_line(console: FlaskClient, link: int) -> None:
    assert "visitor" not in get(console, "/console/statistics").split("<main")[1].split('id="by"')[0].lower()


def test_a_label_with_a_comma_filters_by_it(console: FlaskClient, link: int) -> None:
    assert rows(console, f"link={link}&country=France, South&dimension=browser") == [["Chrome", "1", "1"]]


@pytest.mark.parametrize("query", ["dimension=x", "second=x", "country=%00", "link=x", "link=1&link=2", "period=x"])
def test_a_wrong_query_is_refused(console: FlaskClient, query: str) -> None:
    assert console.get(f"/console/statistics?{query}").status_code == 400


@pytest.mark.parametrize("kind", ["link", "qr", "campaign", "channel"])
def test_rows_of_other_users_have_no_statistics(console: FlaskClient, bob: Client, sql: Sql, kind: str) -> None:
    row_id = getattr(factories, kind)(sql, bob.id)
    assert console.get(f"/console/statistics?{kind}={row_id}").status_code == 404
    assert console.get(f"/console/statistics?{kind}=0").status_code == 404


def test_a_filter_before_the_retention_says_what_to_do(
    app: Flask, console: FlaskClient, alice: Client, link: int, sql: Sql
) -> None:
    sql("UPDATE users SET detailed_since = now() - interval '10 days' RETURNING 1")
    answer = console.get(f"/console/statistics?link={link}&country=Peru&dimension=browser")
    assert answer.status_code == 400
    assert "Choose a later period, or remove a filter." in answer.text
    assert "Countries: Peru (PE)" in seen(answer.text)
    assert console.get(f"/console/statistics?link={link}&country=Peru&dimension=browser&period=7d").status_code == 200


def test_the_page_needs_at_most_three_statements(console: FlaskClient, link: int, executed: list[str]) -> None:
    for query in ("", f"link={link}&country=Peru&dimension=browser&second=os", "dimension=target"):
        executed.clear()
        get(console, f"/console/statistics?{query}")
        assert len(executed) <= 4, query  # with that of the session
