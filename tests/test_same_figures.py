"""One figure is one number, on each page of the console and in the API."""

from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import details, get, seen, visit
from tests.support.reports import report
from tests.support.visited import Store


def test_the_api_and_all_pages_show_the_same_sums(console: FlaskClient, alice: Client, sql: Sql, store: Store) -> None:
    sale, other, code = (make(sql, alice.id) for make in (factories.link, factories.link, factories.qr))
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    factories.assign(sql, campaign, [sale, other])
    for kind, row_id in (("links", sale), ("links", other), ("qr", code)):
        alice.post(f"/api/channel/{channel}/assign/{kind}/{row_id}")
    scans = [visit(sale, kind="scan"), visit(sale, kind="scan"), *(visit(code, kind="scan") for _ in range(4))]
    store([*(visit(sale) for _ in range(5)), visit(other), *scans])
    sql("UPDATE links SET imported_clicks = 1000 WHERE id = %(id)s RETURNING 1", id=sale)
    figures = {sale: 7, other: 1, code: 4}

    for order in ("order=click", "order=date"):
        listed = alice.get(f"/api/urls?{order}").get_json()["data"]["urls"]
        assert {link["id"]: (link["clicks"], link["imported_clicks"]) for link in listed} == {
            sale: (7, 1000),
            other: (1, None),
        }
        assert [link["id"] for link in listed] == ([sale, other] if order == "order=click" else [other, sale])
    assert alice.get(f"/api/url/{sale}").get_json()["data"]["clicks"] == 7
    assert details(alice, sale)["imported_clicks"] == 1000
    assert alice.get(f"/api/qr/{code}").get_json()["details"]["scans"] == 4
    counted = report(alice, "by=target")["data"]
    assert {row["target"]: row["clicks"] for row in counted["rows"]} == figures
    assert counted["totals"]["clicks"] == 12

    page = seen(get(console, "/console/links?order=click"))
    assert page.index("1,007 clicks 1,000 imported") < page.index(" 1 click ")
    shown = {
        "": "12 visits in the last 28 days 6 clicks and 6 scans",
        "/statistics": "12 visits in the last 28 days 6 clicks and 6 scans",
        f"/links/{sale}": "clicks 1,007 of which scans 2 of which imported 1,000",
        f"/qrs/{code}": "scans 4",
        f"/campaigns/{campaign}": "clicks 1,008 of which imported 1,000",
        f"/channels/{channel}": "visits 1,012 of which imported 1,000",
        "/campaigns?order=-clicks": "8 clicks",
        "/channels?period=7d": "12 visits",
    }
    for path, words in shown.items():
        assert words in seen(get(console, f"/console{path}")), path
    assert "Visits this month 12 " in seen(get(console, "/account"))
