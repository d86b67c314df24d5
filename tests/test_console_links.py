"""The list of links in the console, its filters and orders."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from linkmgr.repository import link_lists
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, ids_of, seen
from tests.support.visited import Store, Visited


@pytest.fixture
def mixed(alice: Client, bob: Client, sql: Sql) -> dict[str, int]:
    """Add a link for each filter, and return the ids of the rows by name."""
    url = "https://example.com/"
    rows = {name: getattr(factories, name)(sql, alice.id) for name in ("domain", "campaign", "channel")}
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=rows["domain"])[0]["host"]
    made = {
        "branded": {"domain": f"https://{host}"},
        "in_campaign": {"campaign": rows["campaign"], "metatitle": "Plan B"},
        "in_channel": {"channel": [rows["channel"]]},
        "private": {"status": "private", "metatitle": "Plan A"},
        "expired": {"expiry": "2020-01-01"},
        "locked": {"password": "secret"},
    }
    links = {name: alice.add("/api/url/add", {"url": url + name} | body) for name, body in made.items()}
    factories.link(sql, bob.id)
    return rows | links


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("domain={domain}", ["branded"]),
        ("campaign={campaign}", ["in_campaign"]),
        ("channel={channel}", ["in_channel"]),
        ("status=private", ["private"]),
        ("since=2020-01-01&until=9999-12-31&status=private", ["private"]),
        ("until=2020-01-01", []),
        ("expired=yes", ["expired"]),
        ("password=yes", ["locked"]),
        ("domain=0&status=public&expired=no&password=no", ["in_channel", "in_campaign"]),
        ("q=plan", ["private", "in_campaign"]),
        ("q=plan&campaign={campaign}", ["in_campaign"]),
        ("q=plan&campaign={campaign}&status=private", []),
        ("order=click&expired=yes", ["expired"]),
        ("campaign=99999", []),
        ("page=2&status=public", []),
    ],
)
def test_filters_are_in_the_query_and_each_is_removed_by_its_chip(
    console: FlaskClient, mixed: dict[str, int], query: str, expected: list[str]
) -> None:
    page = get(console, f"/console/links?{query.format(**mixed)}")
    assert ids_of(page) == [mixed[name] for name in expected]
    chips = re.findall(r'class="chip" href="([^"]+)"', page)
    filters = [part for part in query.split("&") if not part.startswith(("order=", "page="))]
    assert len(chips) == len(filters)
    for chip in chips:
        assert chip.count("=") == query.count("=") - 1 - ("page=" in query)
        get(console, chip.replace("&amp;", "&"))


@pytest.mark.parametrize(
    ("words", "expected", "chips"),
    [
        ("is:private", ["private"], 1),
        ("is:EXPIRED is:public", ["expired"], 2),
        ("has:password", ["locked"], 1),
        ("has:clicks", [], 1),
        ("no:clicks is:private", ["private"], 2),
        ("plan is:private", ["private"], 2),
        ('campaign:"{campaign}"', ["in_campaign"], 1),
        ('plan channel:"{channel}"', [], 2),
        ("domain:{host}", ["branded"], 1),
        ("is:nothing", [], 1),
        ("campaign:nowhere", [], 1),
        ('campaign:""', [], 1),
    ],
)
def test_words_of_the_search_are_filters(
    *, console: FlaskClient, mixed: dict[str, int], sql: Sql, words: str, expected: list[str], chips: int
) -> None:
    [row] = sql("""SELECT c.name AS campaign, h.name AS channel, host
                     FROM campaigns c, channels h, domains""")
    page = get(console, "/console/links?" + urlencode({"q": words.format(**row)}))
    assert ids_of(page) == [mixed[name] for name in expected]
    assert page.count('class="chip"') == chips


@pytest.fixture
def visited(alice: Client, sql: Sql, store: Store) -> dict[str, int]:
    """Links, by what they have most of. The account has visits of a QR code and of a deleted link, too."""
    names = ("clicks", "visitors", "last", "none")
    links = {name: factories.link(sql, alice.id, title=f"Plan {name}") for name in names}
    others = factories.qr(sql, alice.id), factories.link(sql, alice.id)
    now = datetime.now(UTC)
    store([Visited(links["clicks"], now - timedelta(days=9)) for _ in range(5)])
    store([Visited(links["visitors"], now - timedelta(days=5), bytes([number])) for number in range(3)])
    store([Visited(row_id, now) for row_id in (links["last"], *others)])
    store([Visited(links["none"], now, bot=True)])
    sql("UPDATE links SET created = '2020-01-01' WHERE id = %(id)s", id=links["last"])  # as an import does
    alice.delete(f"/api/url/{others[1]}/delete")
    return links


ORDERS = {
    "click": ["clicks", "visitors", "last", "none"],
    "visitor": ["visitors", "last", "clicks", "none"],
    "visit": ["last", "visitors", "clicks", "none"],
    "date": ["none", "last", "visitors", "clicks"],
    "created": ["none", "visitors", "clicks", "last"],
    "oldest": ["last", "clicks", "visitors", "none"],
    "fewest": ["none", "last", "visitors", "clicks"],
    "recent": ["clicks", "visitors", "last", "none"],
}


@pytest.mark.parametrize("filters", ["", "q=plan", "status=public", "status=public&q=plan"])
@pytest.mark.parametrize("order", ORDERS)
def test_links_are_ordered_by_their_numbers_with_and_without_filters(
    console: FlaskClient, visited: dict[str, int], order: str, filters: str
) -> None:
    expected = [visited[name] for name in ORDERS[order]]
    page = get(console, f"/console/links?order={order}&{filters}")
    assert ids_of(page) == expected
    shown = {"visitor": "3 visitors", "visit": "no visits"}
    assert [name for name, text in shown.items() if text in seen(page)] == [name for name in shown if name == order]
    assert ("Jan 1, 2020" in seen(page)) == (order not in shown)


def test_an_order_of_many_links_compares_the_newest_and_those_with_the_latest_visits(
    console: FlaskClient, visited: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_lists, "MAX_COMPARED", 2)
    page = get(console, "/console/links?order=click")
    assert ids_of(page) == [visited["last"], visited["none"]]
    assert ">4</span>" in page
    assert "compares the newest 2 links" in seen(page)
    assert "compares" not in seen(get(console, "/console/links"))


def test_the_channels_of_a_row_filter_the_list(console: FlaskClient, alice: Client, sql: Sql) -> None:
    channels = [factories.channel(sql, alice.id) for _ in range(5)]
    first, second = factories.link(sql, alice.id), factories.link(sql, alice.id)
    for channel in channels:
        alice.post(f"/api/channel/{channel}/assign/links/{first}")
    alice.post(f"/api/channel/{channels[0]}/assign/links/{second}")
    page = get(console, "/console/links?status=public&per=50")
    tags = re.findall(r'class="badge tag" href="([^"]+)"', page)
    urls = [f"/console/links?channel={channel}&amp;status=public&amp;per=50" for channel in channels]
    assert tags == [urls[0], *urls[:3]]
    assert page.count("more channels") == 1
    assert ids_of(get(console, urls[1].replace("&amp;", "&"))) == [first]


@pytest.mark.parametrize(
    "query",
    [
        "domain=x",
        "campaign=-1",
        "status=hidden",
        "expired=1",
        "campaign=1&campaign=2",
        "page=x",
        "since=x",
        "order=title",
        "q=a&q=b",
        "q=%00",
    ],
)
def test_a_wrong_filter_is_an_error_with_a_sentence(console: FlaskClient, query: str) -> None:
    assert console.get(f"/console/links?{query}").status_code == 400


def test_the_filters_of_the_first_page_are_kept_on_the_second(console: FlaskClient, alice: Client, sql: Sql) -> None:
    for _ in range(27):
        factories.link(sql, alice.id)
    page = get(console, "/console/links?status=public&order=click&page=2")
    assert len(ids_of(page)) == 2
    [previous] = re.findall(r'rel="prev" href="([^"]+)"', page)
    assert {"status=public", "order=click", "page=1"} == set(previous.split("?")[1].replace("&amp;", "&").split("&"))
