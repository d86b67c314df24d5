"""Public statistics: the page of a link or a campaign, for all who have its address."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from linkmgr.console import periods, public_statistics
from linkmgr.core.web import attempts, pool
from linkmgr.features.public_statistics import repository
from linkmgr.visits.dimensions import TITLES
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import fields, get, words
from tests.support.shortlinks import BRANDED, add
from tests.support.visited import Store, Visited

SECRET = "open sesame"
OFF = {"public": False, "url": "", "haspassword": False, "period": "28d", "tables": ["country", "referrer", "device"]}


def put(client: Client, subject: str, **members: Any) -> dict[str, Any]:
    answer = client.put(f"/api/{subject}/public", {"public": True} | members)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.get_json()["data"]
    return page


def opened(app: Flask, page: dict[str, Any], password: str | None = None, **options: Any) -> TestResponse:
    if password is not None:
        options |= {"data": {"password": password}, "method": "POST"}
    return app.test_client().open(urlsplit(page["url"]).path, **options)


@pytest.fixture
def link(alice: Client, store: Store) -> int:
    """A link with eight clicks of people in Germany in this week, four of one in Peru two months ago."""
    link_id = int(add(alice, custom="summer", title="Secret name", metatitle="Summer sale")["id"])
    now = datetime.now(UTC)
    store(
        [
            *[Visited(link_id, now, country="Germany", referrer="news.example")] * 8,
            *[Visited(link_id, now - timedelta(days=65), country="Peru", referrer="blog.example")] * 4,
            *[Visited(link_id, now, country="Chile", bot=True)] * 2,
        ]
    )
    return link_id


@pytest.fixture(autouse=True)
def forget_figures() -> None:
    public_statistics._figures.cache_clear()


def test_a_page_shows_the_chosen_tables_of_the_chosen_period(app: Flask, alice: Client, link: int) -> None:
    page = opened(app, put(alice, f"url/{link}", tables=["country"])).text
    assert "8 clicks in the last 28 days" in page
    assert re.findall("<h2>(.*?)</h2>", page.split('<div class="tables">')[1]) == ["Countries"]
    assert ("Germany (DE)" in page, "Peru" in page, "Chile" in page, "news.example" in page) == (True, *[False] * 3)
    page = opened(app, put(alice, f"url/{link}", period="12mo", tables=["referrer"])).text
    assert "12 clicks in the last 12 months" in page
    assert ("blog.example" in page, "news.example" in page, "Germany" in page) == (True, True, False)
    assert '<div class="tables">' not in opened(app, put(alice, f"url/{link}", tables=[])).text


def test_all_time_begins_with_the_first_click(app: Flask, alice: Client, store: Store, link: int) -> None:
    page = put(alice, f"url/{link}", period="all", tables=["country"])
    assert page["period"] == "all"
    shown = opened(app, page).text
    assert "12 clicks in all time<" in shown
    assert len(re.findall('class="mark"', shown)) == 66  # days, without any before
    store([Visited(link, datetime(year, 5, 1, tzinfo=UTC)) for year in (1994, 2024)])
    public_statistics._figures.cache_clear()
    assert "13 clicks in all time<" in opened(app, page).text  # of at most MAX_DAYS
    never = put(alice, f"url/{add(alice, custom='never')['id']}", period="all")
    assert "No clicks in all time." in opened(app, never).text


def test_a_page_has_no_name_target_or_address_that_visitors_do_not_see(app: Flask, alice: Client, link: int) -> None:
    other = add(alice, custom="winter", url="https://example.com/other")
    page = opened(app, put(alice, f"url/{link}", tables=[*TITLES])).text
    assert "<h1><bdi>Summer sale</bdi></h1>" in page
    assert "/summer</bdi>" in page
    for secret in ("Secret name", "example.com", "winter", other["shorturl"], "alice", "/console/", "/api/"):
        assert secret not in page, secret


def test_a_campaign_counts_its_links_and_names_none(app: Flask, alice: Client, sql: Sql, store: Store) -> None:
    campaign = alice.add("/api/campaign/add", {"name": "Fair <2026>", "public": False})
    mine = [add(alice, custom=f"own-{n}", metatitle=f"Own {n}", campaign=campaign)["id"] for n in range(2)]
    others = add(alice, custom="other", metatitle="Other")["id"]
    now = datetime.now(UTC)
    store([*(Visited(row, now, country="Peru") for row in mine), *[Visited(others, now, country="Chile")] * 5])
    page = opened(app, put(alice, f"campaign/{campaign}")).text
    assert "2 clicks in the last 28 days" in page
    assert "<h1><bdi>Fair &lt;2026&gt;</bdi></h1>" in page
    assert "Peru (PE)" in page
    assert not [text for text in ("Chile", "own-0", "Own 1", "other", "Other") if f">{text}" in page]
    assert alice.delete(f"/api/campaign/{campaign}/delete").status_code == 200
    assert sql("SELECT FROM public_statistics") == []


def test_search_engines_and_caches_leave_it_out(app: Flask, alice: Client, link: int) -> None:
    for page in (put(alice, f"url/{link}"), put(alice, f"url/{link}", password=SECRET)):
        answer = opened(app, page)
        assert answer.headers["X-Robots-Tag"] == "noindex, nofollow"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] in ("no-referrer", "same-origin")
        assert re.search('<meta name="robots" content="noindex', answer.text)


# --- on and off


def test_a_page_is_off_until_it_is_shown_and_gets_a_new_address_each_time(app: Flask, alice: Client, link: int) -> None:
    path = f"/api/url/{link}/public"
    assert alice.get(path).get_json()["data"] == OFF
    first = put(alice, f"url/{link}")
    assert first == OFF | {"public": True, "url": first["url"]} == alice.get(path).get_json()["data"]
    assert put(alice, f"url/{link}", period="7d") == first | {"period": "7d"}
    assert put(alice, f"url/{link}", tables=["os"]) == first | {"period": "7d", "tables": ["os"]}
    assert opened(app, first).status_code == 200
    assert alice.put(path, {"period": "28d"}).get_json()["data"]["url"] == first["url"]
    for _ in range(2):
        hidden = put(alice, f"url/{link}", public=False)
        assert hidden == OFF | {"tables": ["os"]}
        assert put(alice, f"url/{link}", **hidden) == hidden  # a record can be written back
    assert opened(app, first).status_code == 404
    second = put(alice, f"url/{link}")
    assert second == first | {"url": second["url"], "tables": ["os"]}
    assert second["url"] != first["url"]
    assert [opened(app, page).status_code for page in (first, second)] == [404, 200]


@pytest.mark.parametrize(
    "end",
    [
        lambda alice, link, sql: alice.delete(f"/api/url/{link}/delete?bin=1"),
        lambda alice, link, sql: alice.delete(f"/api/url/{link}/delete"),
        lambda alice, link, sql: sql("UPDATE links SET blocked = now() RETURNING 1"),
        lambda alice, link, sql: sql("UPDATE users SET suspended = 'all' WHERE id = %(id)s RETURNING 1", id=alice.id),
    ],
    ids=["bin", "delete", "block", "suspension"],
)
def test_a_page_ends_with_its_link(
    app: Flask, alice: Client, sql: Sql, link: int, end: Callable[[Client, int, Sql], Any]
) -> None:
    page = put(alice, f"url/{link}")
    end(alice, link, sql)
    assert opened(app, page).status_code == 404


def test_a_link_from_the_bin_is_not_public(app: Flask, alice: Client, link: int) -> None:
    page = put(alice, f"url/{link}")
    alice.delete(f"/api/url/{link}/delete?bin=1")
    assert alice.post(f"/api/url/{link}/restore").status_code == 200
    assert alice.get(f"/api/url/{link}/public").get_json()["data"] == OFF
    assert opened(app, page).status_code == 404


def test_a_page_ends_with_its_account(app: Flask, alice: Client, admin: Client, link: int) -> None:
    page = put(alice, f"url/{link}")
    assert admin.delete(f"/api/user/{alice.id}/delete").status_code == 200
    assert opened(app, page).status_code == 404


def test_a_branded_domain_has_no_such_page(app: Flask, alice: Client, sql: Sql, link: int) -> None:
    factories.row(sql, "domains", user_id=alice.id, scheme="https", host=BRANDED)
    page = put(alice, f"url/{link}")
    assert opened(app, page, headers={"Host": BRANDED}).status_code == 404


@pytest.mark.parametrize("token", ["x", "0" * 43, "..", "%00", "a/b", "_" * 65])
def test_another_address_is_a_404(app: Flask, token: str) -> None:
    assert app.test_client().get(f"/statistics/{token}").status_code == 404


# --- passwords


def test_a_page_with_a_password_shows_nothing_without_it(app: Flask, alice: Client, sql: Sql, link: int) -> None:
    page = put(alice, f"url/{link}", password=SECRET)
    assert page["haspassword"] is True
    assert SECRET not in str(sql("SELECT * FROM public_statistics"))
    for answer in (opened(app, page), opened(app, page, ""), opened(app, page, "wrong")):
        assert not [text for text in ("Summer sale", "8 clicks", "Germany") if text in answer.text]
    assert [opened(app, page, *sent).status_code for sent in ((), ("wrong",), (SECRET,))] == [200, 401, 200]
    assert "This password is wrong. Try again." in opened(app, page, "wrong").text
    assert "8 clicks" in opened(app, page, SECRET).text
    assert put(alice, f"url/{link}", period="28d")["haspassword"] is True
    assert put(alice, f"url/{link}", password="")["haspassword"] is False
    assert "8 clicks" in opened(app, page).text
    assert "8 clicks" in opened(app, page, "any").text


def test_null_removes_the_password(alice: Client, link: int) -> None:
    put(alice, f"url/{link}", password=SECRET)
    assert put(alice, f"url/{link}", password=None)["haspassword"] is False


def test_wrong_passwords_are_limited_by_client(app: Flask, alice: Client, link: int) -> None:
    page = put(alice, f"url/{link}", password=SECRET)
    other = put(alice, f"url/{add(alice, custom='other')['id']}", password=SECRET)
    statuses = [opened(app, page, "wrong").status_code for _ in range(attempts.ATTEMPTS + 1)]
    assert statuses == [401] * attempts.ATTEMPTS + [429]
    refused = opened(app, page, SECRET)
    assert (refused.status_code, "Retry-After" in refused.headers) == (429, True)
    assert opened(app, other, SECRET).status_code == 200
    elsewhere = {"environ_base": {"REMOTE_ADDR": "192.0.2.7"}}
    assert opened(app, page, SECRET, **elsewhere).status_code == 200


# --- bounds


def test_pages_are_limited_by_client(make_app: Callable[..., Flask], alice: Client, link: int) -> None:
    page = put(alice, f"url/{link}")
    limited = make_app(page_rate_limit="3 per minute")
    assert [opened(limited, page).status_code for _ in range(4)] == [200] * 3 + [429]


def test_figures_are_counted_once_a_minute(
    app: Flask, alice: Client, link: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, count = put(alice, f"url/{link}"), periods.count
    counted: list[Any] = []

    def note(*args: Any, **options: Any) -> Any:
        counted.append(args)
        return count(*args, **options)

    monkeypatch.setattr(periods, "count", note)
    for _ in range(5):
        opened(app, page)
    assert len(counted) <= 2  # the minute may end
    put(alice, f"url/{link}", tables=[])
    assert '<div class="tables">' not in opened(app, page).text  # a change is seen at once


def test_the_figures_of_a_large_campaign_need_a_slot(
    app: Flask, alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = alice.add("/api/campaign/add", {"name": "Fair"})
    add(alice, campaign=campaign)
    page = put(alice, f"campaign/{campaign}")
    slots: list[str] = []
    monkeypatch.setattr(pool, "take", slots.append)
    opened(app, page)
    assert slots == []
    public_statistics._figures.cache_clear()
    monkeypatch.setattr(repository, "MANY", 1)
    opened(app, page)
    assert slots == ["stats_busy"]


@pytest.mark.parametrize(
    "members",
    [
        {"period": "1d"},
        {"period": 7},
        {"public": "yes"},
        {"tables": "country"},
        {"tables": ["country", "target"]},
        {"tables": [["os"]]},
        {"tables": [None]},
        {"tables": {}},
        {"password": "x" * 1025},
        {"password": 7},
    ],
    ids=str,
)
def test_bad_members_are_refused(alice: Client, link: int, members: dict[str, Any]) -> None:
    answer = alice.put(f"/api/url/{link}/public", {"public": True} | members)
    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")
    assert alice.get(f"/api/url/{link}/public").get_json()["data"] == OFF


# --- tenants, restricted keys and the feature


def test_another_user_neither_reads_nor_changes_a_page(alice: Client, bob: Client, link: int) -> None:
    campaign = alice.add("/api/campaign/add", {"name": "Fair"})
    page = put(alice, f"url/{link}"), put(alice, f"campaign/{campaign}")
    for path in (f"/api/url/{link}/public", f"/api/campaign/{campaign}/public"):
        missing = re.sub("[0-9]+", "999999", path)
        for method in ("GET", "PUT"):
            answers = [
                bob.call(method, place, {"period": "7d"} if method == "PUT" else None) for place in (path, missing)
            ]
            assert [answer.status_code for answer in answers] == [404, 404]
            bodies = [answer.get_json() for answer in answers]
            assert bodies[0]["message"] == bodies[1]["message"]
    assert (put(alice, f"url/{link}"), put(alice, f"campaign/{campaign}")) == page


def test_without_the_feature_there_is_no_page_and_no_operation(
    make_app: Callable[..., Flask], alice: Client, link: int, console: FlaskClient
) -> None:
    page = put(alice, f"url/{link}")
    assert f"/console/links/{link}/public" in get(console, f"/console/links/{link}")
    without = make_app(features=["-public_statistics"])
    assert opened(without, page).status_code == 404
    client = Client(without.test_client(), alice.key)
    assert client.get(f"/api/url/{link}/public").get_json()["code"] == "no_such_operation"
    browser = without.test_client()
    browser.post("/login", data={"email": "alice@example.com", "password": "correct horse"})
    assert f"{link}/public" not in get(browser, f"/console/links/{link}")
    assert browser.get(f"/console/links/{link}/public").status_code == 404


# --- the console


def test_the_console_shows_changes_and_hides_a_page(app: Flask, console: FlaskClient, alice: Client, link: int) -> None:
    path = f"/console/links/{link}/public"
    form = get(console, path)
    assert "Secret name" in form
    assert fields(form) == {"period": ["28d"], "tables": OFF["tables"], "password": [""]}
    sent = {"period": "7d", "tables": ["country", "os"], "password": SECRET}
    assert console.post(path, data=sent).status_code == 303
    page = alice.get(f"/api/url/{link}/public").get_json()["data"]
    chosen = {"haspassword": True, "period": "7d", "tables": ["country", "os"]}
    assert page == OFF | {"public": True, "url": page["url"]} | chosen
    form = get(console, path)
    assert page["url"] in form
    assert console.post(path, data=fields(form)).status_code == 303
    assert alice.get(f"/api/url/{link}/public").get_json()["data"] == page
    assert console.post(path, data=fields(form) | {"password.remove": "1", "tables": []}).status_code == 303
    assert alice.get(f"/api/url/{link}/public").get_json()["data"] == page | {"haspassword": False, "tables": []}
    answer = console.post(path, data={"period": "1d"})
    assert (answer.status_code, "period must be one of" in words(answer.text)) == (400, True)
    assert console.post(path, data={"hide": "1"}).status_code == 303
    assert opened(app, page).status_code == 404


def test_the_console_shows_the_page_of_a_campaign(app: Flask, console: FlaskClient, alice: Client) -> None:
    campaign = alice.add("/api/campaign/add", {"name": "Fair"})
    path = f"/console/campaigns/{campaign}/public"
    assert path in get(console, f"/console/campaigns/{campaign}")
    assert console.post(path, data={"period": "28d"}).status_code == 303
    page = alice.get(f"/api/campaign/{campaign}/public").get_json()["data"]
    assert (page["tables"], opened(app, page).status_code) == ([], 200)


def test_another_user_has_no_form(app: Flask, bob: Client, link: int) -> None:
    browser = app.test_client()
    browser.post("/login", data={"email": "bob@example.com", "password": "correct horse"})
    for answer in (browser.get(f"/console/links/{link}/public"), browser.post(f"/console/links/{link}/public")):
        assert answer.status_code == 404
