"""Conversions: once for each visitor of a link, and nothing of others."""

import io
import json
import zipfile
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.features.conversions.results import interval
from linkmgr.repository import purge
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import signed_in, words
from tests.support.races import at_once
from tests.support.rollups import FOLLOW_VISITS
from tests.support.shortlinks import ANDROID, Make, Short
from tests.support.targets import FIREFOX

VARIANTS = [{"name": name, "url": f"https://example.com/{name}", "weight": 1} for name in "AB"]
HOME = "192.0.2.7"


def fetch(app: Flask, url: str, *, agent: str = FIREFOX, address: str = HOME, **others: Any) -> None:
    answer = app.test_client().get(url, headers={"User-Agent": agent}, environ_base={"REMOTE_ADDR": address}, **others)
    assert (answer.status_code, answer.mimetype, answer.headers["Cache-Control"]) == (200, "image/gif", "no-store")
    assert answer.data.startswith(b"GIF89a")


def results(alice: Client, link: Short) -> dict[str, Any]:
    data: dict[str, Any] = alice.get(f"/api/url/{link.id}/conversions").get_json()["data"]
    return data


@pytest.fixture
def link(short: Make) -> Short:
    """An experiment with a visitor."""
    link = short(variants=VARIANTS)
    link.redirect_target(address=HOME)
    link.wait_for_clicks(1)
    return link


def test_a_visitor_is_counted_once_for_a_link_with_the_value_and_the_variant(
    located: Flask, alice: Client, link: Short
) -> None:
    pixel = results(alice, link)["pixel"]
    for query in ("?value=29.90&name=Signed+up", "?value=5", ""):
        fetch(located, pixel + query)
    found = results(alice, link)
    assert (found["visits"], found["visitors"], found["conversions"], found["value"]) == (1, 1, 1, 29.9)
    [winner] = [variant for variant in found["variants"] if variant["visitors"]]
    assert link.redirect_target(address=HOME) == winner["url"]
    low, high = interval(1, 1)
    assert (winner["conversions"], winner["value"], winner["rate"], winner["low"], winner["high"]) == (
        1, 29.9, 1, low, high,
    )  # fmt: skip
    assert found["winner"] is None  # of one visitor


def test_nothing_is_stored_of_strangers_of_old_visits_and_of_unknown_tokens(
    located: Flask, alice: Client, link: Short, short: Make, sql: Sql
) -> None:
    pixel = results(alice, link)["pixel"]
    id_, _, signature = pixel.rpartition("/")[2].removesuffix(".gif").partition(".")
    fetch(located, pixel, agent=ANDROID)
    fetch(located, pixel, address="192.0.2.8")
    fetch(located, results(alice, short())["pixel"])  # of a link that the visitor did not use
    fetch(located, f"/c/{int(id_) + 1}.{signature}.gif")
    fetch(located, "/c/unknown.gif")
    age = "UPDATE visitors SET seen = timezone('UTC', now())::date - %(days)s::int RETURNING 1"
    sql(age, days=31)
    fetch(located, pixel)
    assert sql("SELECT * FROM conversions") == []
    sql(age, days=30)
    fetch(located, pixel, query_string={"value": "nan", "name": "\0 " + "x" * 60})
    stored = sql("SELECT name, value FROM conversions")
    assert [(row["name"], float(row["value"])) for row in stored] == [("x" * 50, 0)]


def test_another_visit_renews_the_last_day_and_the_variant(link: Short, sql: Sql) -> None:
    visitor = "SELECT seen = timezone('UTC', now())::date AS today, variant FROM visitors"
    before = sql(visitor)
    sql("UPDATE visitors SET seen = seen - 20, variant = NULL RETURNING 1")
    link.redirect_target(address=HOME)
    link.wait_for_clicks(2)
    assert sql(visitor) == before
    assert before in ([{"today": True, "variant": name}] for name in "AB")
    assert sql("SELECT visitors FROM totals") == [{"visitors": 1}]


def test_a_visit_without_a_variant_leaves_a_visitor_the_last_one(link: Short, sql: Sql) -> None:
    before = sql("SELECT variant FROM visitors")
    sql("UPDATE links SET variants = '[]' RETURNING 1")
    sql("UPDATE visitors SET seen = seen - 1 RETURNING 1")
    link.redirect_target(address=HOME)
    link.wait_for_clicks(2)
    assert sql("SELECT variant FROM visitors WHERE seen = timezone('UTC', now())::date") == before


def test_an_address_has_60_pixels_a_minute_and_still_gets_the_image(
    located: Flask, alice: Client, link: Short, sql: Sql
) -> None:
    pixel = results(alice, link)["pixel"]
    sql(
        """
        INSERT INTO rate_windows (bucket, count, until) VALUES ('pixel:192.0.2.7', 60, now() + interval '50 seconds')
        RETURNING 1
        """
    )
    fetch(located, pixel)
    assert results(alice, link)["conversions"] == 0


def test_a_browser_that_wants_privacy_now_is_not_counted(make_app: Any, alice: Client, link: Short) -> None:
    app, pixel = make_app(respect_dnt="1"), results(alice, link)["pixel"]
    fetch(app, pixel, environ_overrides={"HTTP_SEC_GPC": "1"})
    app.test_client().head(pixel, headers={"User-Agent": FIREFOX}, environ_base={"REMOTE_ADDR": HOME})
    assert results(alice, link)["conversions"] == 0
    fetch(app, pixel)
    assert results(alice, link)["conversions"] == 1


def test_a_server_reports_conversions_with_a_key(alice: Client, bob: Client, short: Make) -> None:
    link, agent = short(), f"{FIREFOX} {'App ' * 200}"  # of which visits have the beginning
    link.redirect_target(address=HOME, agent=agent)
    link.wait_for_clicks(1)
    body = {"link": link.id, "ip": f"::ffff:{HOME}", "agent": agent, "value": 5, "name": "Bought"}
    assert bob.post("/api/conversions", body).get_json()["code"] == "link_unknown"
    assert alice.post("/api/conversions", body | {"ip": "192.0.2.8"}).get_json()["counted"] is False
    assert [alice.post("/api/conversions", body).get_json()["counted"] for _ in range(2)] == [True, False]
    assert results(alice, link)["value"] == 5
    for wrong in ({"value": -1}, {"value": True}, {"value": 1e10}, {"ip": "home"}, {"name": "x" * 51}, {"agent": ""}):
        assert alice.post("/api/conversions", body | wrong).status_code == 400, wrong
    assert bob.get(f"/api/url/{link.id}/conversions").status_code == 404


def test_a_link_has_20_names_and_others_count_as_other(alice: Client, link: Short, sql: Sql) -> None:
    sql(
        """
        UPDATE totals SET conversions = jsonb_build_object('name', (SELECT jsonb_object_agg(n, 1)
                                                                      FROM generate_series(1, 19) n))
         WHERE tracked_id = %(id)s RETURNING 1
        """,
        id=link.id,
    )
    for number, name in enumerate(("The last", "One more", "7"), 7):
        link.redirect_target(address=f"192.0.2.{number}")
        link.wait_for_clicks(number - 5)
        body = {"link": link.id, "ip": f"192.0.2.{number}", "agent": FIREFOX, "name": name}
        assert alice.post("/api/conversions", body).get_json()["counted"]
    assert [row["name"] for row in sql("SELECT name FROM conversions ORDER BY at")] == ["The last", "Other", "7"]


def test_conversions_at_the_same_time_are_counted_exactly_on_the_page_and_in_the_api(
    *, located: Flask, alice: Client, link: Short, console: FlaskClient, sql: Sql, executed: list[str]
) -> None:
    def come_back_and_buy(number: int) -> None:
        address = f"192.0.2.{50 + number // 2}"
        link.redirect_target(address=address)
        fetch(located, f"{pixel}?value=1000.55", address=address)

    pixel = results(alice, link)["pixel"]
    for number in range(10):
        link.redirect_target(address=f"192.0.2.{50 + number}")
    link.wait_for_clicks(11)
    at_once(20, come_back_and_buy, threads=4)
    found = results(alice, link)
    assert {row["name"]: (row["conversions"], row["value"]) for row in found["variants"] if row["conversions"]} == {
        row["variant"]: (row["count"], row["sum"])
        for row in sql("SELECT variant, count(*), sum(value)::float8 FROM conversions GROUP BY variant")
    }
    assert (found["conversions"], found["value"]) == (10, 10005.5)
    executed.clear()
    page = words(console.get(f"/console/links/{link.id}").text)
    assert len(executed) <= 4  # with that of the session
    assert "<dt>conversions</dt><dd>10</dd>" in page
    assert "Their value is 10,005.50." in page


@pytest.mark.usefixtures("drop_past_months")
def test_conversions_are_deleted_with_their_visitors(
    app: Flask, alice: Client, short: Make, link: Short, sql: Sql
) -> None:
    other = short()
    other.redirect_target(address=HOME)
    other.wait_for_clicks(1)
    for row in (link, other):
        assert alice.post("/api/conversions", {"link": row.id, "ip": HOME, "agent": FIREFOX}).get_json()["counted"]
    sql("SELECT create_partition(now() - interval '91 days')")
    sql("UPDATE users SET plan_id = (SELECT id FROM plans WHERE name = 'Free') RETURNING 1")
    sql("UPDATE visits SET at = at - interval '91 days' WHERE tracked_id = %(id)s RETURNING 1", id=link.id)
    sql(FOLLOW_VISITS)
    with app.app_context():
        purge.purge()
    assert sql("SELECT tracked_id FROM conversions") == [{"tracked_id": other.id}]
    assert results(alice, link)["conversions"] == 1  # as its visits and visitors, which are counted for ever


@pytest.mark.parametrize(
    ("conversions", "visitors", "low", "high"),
    [(0, 0, 0, 1), (0, 10, 0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1), (50, 1000, 0.0381, 0.0653)],
)
def test_the_interval_is_that_of_wilson(conversions: int, visitors: int, low: float, high: float) -> None:
    assert interval(conversions, visitors) == pytest.approx((low, high), abs=5e-5)


def test_the_interval_of_no_and_of_all_visitors_ends_exactly_there() -> None:
    ends = {(interval(0, visitors)[0], interval(visitors, visitors)[1]) for visitors in range(300)}
    assert ends == {(0, 1)}


def test_statistics_have_conversions_and_their_value_by_time_variant_and_link(alice: Client, link: Short) -> None:
    link.redirect_target(address="192.0.2.8")
    link.wait_for_clicks(2)
    alice.post("/api/conversions", {"link": link.id, "ip": HOME, "agent": FIREFOX, "value": 2.5})
    [name] = [variant["name"] for variant in results(alice, link)["variants"] if variant["conversions"]]
    counted = {"conversions": 1, "value": 2.5}

    def read(query: str) -> dict[str, Any]:
        data: dict[str, Any] = alice.get(f"/api/stats?{query}").get_json()["data"]
        return data

    both = "metrics=clicks,visitors,conversions,value&"
    assert read(f"{both}by=time:day&period=7d")["rows"][-1] | {"time": ""} == {
        "time": "", "clicks": 2, "visitors": 2, **counted
    }  # fmt: skip
    assert read(f"{both}ids={link.id}")["totals"] == {"clicks": 2, "visitors": 2, **counted}
    rows = {row["variant"]: row for row in read(f"metrics=conversions,value&by=variant&ids={link.id}")["rows"]}
    assert rows[name] == {"variant": name, **counted}
    assert read("metrics=conversions&by=time:day,target&period=24h")["rows"][-1]["conversions"] == 1
    assert read("metrics=value&by=campaign")["rows"] == [{"campaign": None, "value": 2.5}]
    assert read(f"metrics=conversions&variant=-{name}")["totals"] == {"conversions": 0}
    answer = alice.get("/api/stats?metrics=conversions&by=country")
    assert (answer.status_code, answer.get_json()["message"]) == (
        400,
        "metrics cannot have conversions and value with country: they are counted by time, variant, target, campaign, "
        "channel, domain.",
    )


def converted(sql: Sql, user_id: int, link_id: int, value: str) -> None:
    sql(
        """
        INSERT INTO conversions (tracked_id, visitor, user_id, at, variant, name, value)
        VALUES (%(link_id)s, %(visitor)s::text::bytea, %(user_id)s, now(), '', '', %(value)s::text::numeric)
        RETURNING 1
        """,
        link_id=link_id,
        visitor=f"visitor {value}",
        user_id=user_id,
        value=value,
    )


def test_sums_of_values_are_decimal_everywhere(app: Flask, alice: Client, sql: Sql) -> None:
    values = ("0.10", "0.20", "133.2", "266.10", "99999999.99")
    for value in values:
        converted(sql, alice.id, factories.link(sql, alice.id), value)
    total, query = "100000399.59", "metrics=value&period=7d"
    for by in ("campaign", "variant", "channel", "time:month"):
        answer = alice.get(f"/api/stats?{query}&by={by}").text
        assert answer.count(f'"value":{total}') == 2, answer  # a row, and the totals
        assert f",{total}\n" in alice.get(f"/api/stats.csv?{query}&by={by}").text.replace("\r", "")
    page = signed_in(app).get("/console/statistics?period=7d").text
    assert "399.590" not in page
    assert "399.589" not in page


def test_an_account_export_has_no_conversions_of_links_in_the_bin(alice: Client, sql: Sql) -> None:
    kept, binned = (factories.link(sql, alice.id) for _ in range(2))
    for link_id in (kept, binned):
        converted(sql, alice.id, link_id, "29.9")
    assert alice.delete(f"/api/url/{binned}/delete?bin=1").status_code == 200
    with zipfile.ZipFile(io.BytesIO(alice.get("/api/account/export").data)) as archive:
        lines = {name: archive.read(name).splitlines() for name in ("links.jsonl", "conversions.jsonl")}
    assert [json.loads(line)["target"] for line in lines["conversions.jsonl"]] == [kept]
    assert [json.loads(line)["id"] for line in lines["links.jsonl"]] == [kept]
    assert b'"value":29.9}' in lines["conversions.jsonl"][0]
