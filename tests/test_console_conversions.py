"""Conversions in the console: their list, corrections, settings and import."""

import csv
import io
import re
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.features.conversions import clicks
from linkmgr.features.conversions import repository as conversions
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, seen, signed_in

LIST = "/console/conversions"


@pytest.fixture
def browser(app: Flask, alice: Client) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def sale(alice: Client, sql: Sql) -> int:
    return factories.conversion(sql, alice.id, order_id="<A-1>")


def value(sql: Sql, row_id: int) -> tuple[Any, str]:
    [row] = sql("SELECT value, currency FROM conversions WHERE id = %(id)s", id=row_id)
    return row["value"], row["currency"]


def test_the_list_has_the_filters_of_the_api(browser: FlaskClient, alice: Client, sale: int, sql: Sql) -> None:
    factories.conversion(sql, alice.id, event="lead", value=None, problem="unreadable", source="page")
    page = get(browser, LIST)
    assert ("29.90 EUR" in page, "unreadable" in page, "&lt;A-1&gt;" in page) == (True, True, True)
    page = get(browser, f"{LIST}?event=lead")
    assert ("29.90 EUR" in page, "Event: lead" in page) == (False, True)
    assert "No conversions match." in seen(get(browser, f"{LIST}?source=x&link=9999"))
    assert browser.get(f"{LIST}?link=x").status_code == 400


@pytest.mark.parametrize(
    ("form", "expected"),
    [({"refund": "9,90"}, (20, "EUR")), ({"value": "1.299,00 €"}, (1299, "EUR")), ({}, (29.9, "EUR")),
     ({"value": "5", "currency": "usd"}, (5, "USD")), ({"currency": "USD"}, (29.9, "USD")),
     ({"refund": "9.90", "currency": "EUR"}, (20, "EUR"))],
)  # fmt: skip
def test_a_value_is_corrected(
    browser: FlaskClient, sale: int, sql: Sql, form: dict[str, str], expected: tuple[Any, str]
) -> None:
    assert browser.post(f"{LIST}/{sale}", data=form).status_code == 303
    assert value(sql, sale) == expected


@pytest.mark.parametrize(
    ("form", "sentence"),
    [({"refund": "30"}, "Refund must not be larger"), ({"refund": "5 USD"}, "Refund must be an amount such as"),
     ({"value": "x"}, "Value must be an amount such as"), ({"currency": "XYZ"}, "Currency must be a currency"),
     ({"value": "5 USD", "currency": "EUR"}, "Value must be"), ({"refund": "5", "value": "5"}, "Refund excludes"),
     ({"value": "2000000000"}, "Value must be at most 1,000,000,000.")],
)  # fmt: skip
def test_a_wrong_correction_says_why_beside_its_field_and_changes_nothing(
    browser: FlaskClient, sale: int, sql: Sql, form: dict[str, str], sentence: str
) -> None:
    answer = browser.post(f"{LIST}/{sale}", data=form)
    name, text = next(iter(form.items()))
    assert (answer.status_code, value(sql, sale)) == (400, (29.9, "EUR"))
    assert f'id="{name}-error" role="alert">{sentence}' in answer.text
    assert name == "currency" or f'value="{text}" id="{name}"' in answer.text, "what was typed is kept"


def test_a_conversion_is_deleted_by_its_owner(browser: FlaskClient, bob: Client, sale: int, sql: Sql) -> None:
    other = factories.conversion(sql, bob.id)
    for path in (f"{LIST}/{other}", f"{LIST}/{other}/delete"):
        assert browser.post(path, data={"value": "1"}).status_code == 404
    for path in (f"{LIST}/{sale}", f"{LIST}/{sale}/delete"):
        page = unescape(seen(get(browser, path)))
        assert "Delete this conversion? sale <A-1>" in page, "a dialog, or a page without scripts"
    assert browser.get(f"{LIST}/{other}/delete").status_code == 404
    assert browser.post(f"{LIST}/{sale}/delete").status_code == 303
    assert [row["id"] for row in sql("SELECT id FROM conversions")] == [other]


def test_the_settings_of_shops(browser: FlaskClient, alice: Client) -> None:
    def setup(**form: str) -> tuple[bool, Any, str]:
        page = browser.post(f"{LIST}/setup", data=form, follow_redirects=True)
        stored = alice.get("/api/conversions/setup").get_json()["data"]
        return stored["clickid"], stored["page_value"], seen(page.text)

    *stored, page = setup(clickid="1", page_value="1.000,00")
    assert (stored, "Changes saved." in page) == ([True, 1000], True)
    answer = browser.post(f"{LIST}/setup", data={"page_value": "-1"})
    assert answer.status_code == 400
    assert 'id="page_value-error" role="alert">The largest value must be an amount such as 29.90.<' in answer.text
    assert ('value="-1" id="page_value"' in answer.text, "checked" in answer.text) == (True, False)
    assert alice.get("/api/conversions/setup").get_json()["data"]["page_value"] == 1000
    assert setup()[:2] == (False, None)


def test_a_file_is_imported_and_its_failures_are_named(
    app: Flask, alice: Client, browser: FlaskClient, sql: Sql
) -> None:
    with app.app_context():
        click = clicks.click_id(factories.link(sql, alice.id), datetime.now(UTC).timestamp())
    for content, sentence in {
        f'click,value\n{click},"29,90"\n{click},5\n{click},x\n'.encode(): "Line 3: it is stored already.",
        b"click\na\n": "Line 2: click must be a click id. 0 conversions imported, 1 not.",
        f"click,event,amount,curency\n{click},lead,29.90,EUR\n".encode(): "The column 'amount' is unknown and was "
        "ignored. Did you mean 'value'? The column 'curency' is unknown and was ignored. Did you mean 'currency'? "
        "1 conversion imported.",
        b"": "There is no file, or it is empty. Choose another one.",
        b"click\n" + b"a\n" * 10_001: "The file has more than 10,000 rows.",
        b"a" * (3 << 20): "The limit is 2 MiB.",
        b"\xff": "The file is no CSV in UTF-8",
    }.items():
        data = {"file": (io.BytesIO(content), "orders.csv")}
        page = unescape(seen(browser.post(f"{LIST}/import", data=data, follow_redirects=True).text))
        assert sentence in page
    assert sql("SELECT value FROM conversions WHERE event <> 'lead'") == [{"value": 29.9}]


def test_a_file_has_the_rows_of_the_list_and_its_filters(
    browser: FlaskClient, alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversions, "BATCH", 1)
    browser.post("/account/timezone", data={"timezone": "Asia/Tokyo"})
    binned, link = factories.link(sql, alice.id, title="Old"), factories.link(sql, alice.id)
    early = datetime(2026, 1, 1, 20, tzinfo=UTC)
    factories.conversion(sql, alice.id, link=binned, order_id="B", labels='{"os": "iOS"}')
    factories.conversion(sql, alice.id, link=link, order_id="A", created=early, event="lead")
    assert alice.delete(f"/api/url/{binned}/delete?bin=1").status_code == 200
    short = sql("SELECT alias FROM links WHERE id = %(id)s", id=link)[0]["alias"]
    for query, orders in {"": ["A", "B"], f"?link={binned}": ["B"], "?event=lead": ["A"], "?order=C": []}.items():
        page = get(browser, f"{LIST}{query}")
        path = re.search('href="([^"]*conversions.csv[^"]*)"', page)
        rows = [*csv.DictReader(get(browser, unescape(path[1])).splitlines())] if path else []
        assert [row["order"] for row in rows] == orders, query
        assert re.findall('<td class="order"><bdi>(.)<', page) == orders, query
    [row] = [*csv.DictReader(get(browser, "/console/conversions.csv?event=lead").splitlines())]
    assert [*row][:3] == ["time (Asia/Tokyo)", "event", "order"]
    assert (row["time (Asia/Tokyo)"], row["short URL"].endswith(f"/{short}")) == ("2026-01-02 05:00:00", True)


def test_links_are_named_and_those_in_the_bin_lead_there(browser: FlaskClient, alice: Client, sql: Sql) -> None:
    link = factories.link(sql, alice.id, title="Garden & terrace")
    labels = '{"os": "iOS", "utm_source": "news", "kind": "scan"}'
    row_id = factories.conversion(sql, alice.id, link=link, labels=labels)
    pages = [f"{LIST}?link={link}", f"{LIST}/{row_id}"]
    for page in (get(browser, path) for path in pages):
        assert f'<a href="/console/links/{link}"><bdi>Garden &amp; terrace</bdi></a>' in page
    assert "Link: Garden & terrace" in unescape(seen(get(browser, pages[0])))
    assert "System iOS UTM source news Kind scan" in seen(get(browser, pages[1]))
    assert alice.delete(f"/api/url/{link}/delete?bin=1").status_code == 200
    for page in (get(browser, path) for path in pages):
        assert '<a href="/console/links/bin"><bdi>Garden &amp; terrace</bdi></a>' in page
        assert ("in the bin" in page, f'"/console/links/{link}"' in page) == (True, False)
