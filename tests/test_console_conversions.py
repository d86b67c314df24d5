"""Conversions in the console: their list, corrections, settings and import."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.features.conversions import clicks
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
    [({"refund": "30"}, "refund must not be larger"), ({"refund": "5 USD"}, "refund must be an amount such as"),
     ({"value": "x"}, "value must be an amount such as"), ({"currency": "XYZ"}, "currency must be a currency"),
     ({"value": "5 USD", "currency": "EUR"}, "value must be"), ({"value": "5", "refund": "5"}, "refund excludes")],
)  # fmt: skip
def test_a_wrong_correction_says_why_and_changes_nothing(
    browser: FlaskClient, sale: int, sql: Sql, form: dict[str, str], sentence: str
) -> None:
    answer = browser.post(f"{LIST}/{sale}", data=form)
    assert (answer.status_code, sentence in answer.text, value(sql, sale)) == (400, True, (29.9, "EUR"))


def test_a_conversion_is_deleted_by_its_owner(browser: FlaskClient, bob: Client, sale: int, sql: Sql) -> None:
    other = factories.conversion(sql, bob.id)
    for path in (f"{LIST}/{other}", f"{LIST}/{other}/delete"):
        assert browser.post(path, data={"value": "1"}).status_code == 404
    assert browser.post(f"{LIST}/{sale}/delete").status_code == 303
    assert [row["id"] for row in sql("SELECT id FROM conversions")] == [other]


def test_the_settings_of_shops(browser: FlaskClient, alice: Client) -> None:
    def setup(**form: str) -> tuple[bool, Any, str]:
        page = browser.post(f"{LIST}/setup", data=form, follow_redirects=True)
        stored = alice.get("/api/conversions/setup").get_json()["data"]
        return stored["clickid"], stored["page_value"], seen(page.text)

    *stored, page = setup(clickid="1", page_value="1.000,00")
    assert (stored, "Settings saved." in page) == ([True, 1000], True)
    *stored, page = setup(page_value="-1")
    assert (stored, "page_value must be an amount" in page) == ([True, 1000], True)
    assert setup()[:2] == (False, None)


def test_a_file_is_imported_and_its_failures_are_named(
    app: Flask, alice: Client, browser: FlaskClient, sql: Sql
) -> None:
    with app.app_context():
        click = clicks.click_id(factories.link(sql, alice.id), datetime.now(UTC).timestamp())
    for content, sentence in {
        f'click,value\n{click},"29,90"\n{click},5\n{click},x\n'.encode(): "Line 3: duplicate.",
        b"click\n" + b"a\n" * 10_001: "The file has more than 10,000 rows.",
        b"a" * (3 << 20): "The limit is 2 MiB.",
        b"\xff": "The file is no CSV in UTF-8",
    }.items():
        data = {"file": (io.BytesIO(content), "orders.csv")}
        page = seen(browser.post(f"{LIST}/import", data=data, follow_redirects=True).text)
        assert sentence in page
    assert sql("SELECT value FROM conversions") == [{"value": 29.9}]
