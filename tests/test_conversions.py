"""Conversions: what is stored of a report, by click id and by visitor, from keys, pages and files."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask

from linkmgr.features.conversions import clicks
from linkmgr.features.conversions import repository as conversions
from linkmgr.visits import counting
from tests.conftest import Client
from tests.support import factories
from tests.support.codes import encoded_path
from tests.support.factories import Sql
from tests.support.races import at_once
from tests.support.shortlinks import ANDROID, Make, Short
from tests.support.targets import FIREFOX

HOME = "192.0.2.7"
SALE = {"event": "sale", "order": "A-1", "value": 29.9, "currency": "EUR"}


def click_of(target: str) -> str:
    return target.partition("lm_click=")[2][: clicks.LENGTH]


def setup(client: Client) -> dict[str, Any]:
    data: dict[str, Any] = client.get("/api/conversions/setup").get_json()["data"]
    return data


def listed(client: Client, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/conversions?{query}").get_json()["data"]["conversions"]
    return found


def fetch(app: Flask, url: str, *, agent: str = FIREFOX, address: str = HOME, **others: Any) -> None:
    answer = app.test_client().get(url, headers={"User-Agent": agent}, environ_base={"REMOTE_ADDR": address}, **others)
    assert (answer.status_code, answer.mimetype, answer.headers["Cache-Control"]) == (200, "image/gif", "no-store")


def send(app: Flask, script: str, body: Any, address: str = HOME) -> None:
    answer = app.test_client().post(
        script.removesuffix(".js"),
        data=json.dumps(body) if isinstance(body, dict) else body,
        headers={"User-Agent": ANDROID, "Content-Type": "text/plain", "Origin": "https://shop.example",
                 "Sec-Fetch-Site": "cross-site"},
        environ_base={"REMOTE_ADDR": address},
    )  # fmt: skip
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (204, "*")


@pytest.fixture
def link(short: Make) -> Short:
    return short(clickid=True, url="https://shop.example/?utm_source=news")


@pytest.fixture
def click(link: Short) -> str:
    """The click id of a visit that is stored."""
    target = link.redirect_target(address=HOME)
    link.wait_for_clicks(1)
    return click_of(target)


def test_a_target_gets_the_click_id_that_finds_its_visit(alice: Client, link: Short, sql: Sql) -> None:
    target = link.redirect_target(address=HOME)
    assert target.startswith("https://shop.example/?utm_source=news&lm_click=")
    link.wait_for_clicks(1)
    assert alice.post("/api/conversions", {"click": click_of(target)} | SALE).get_json()["result"] == "counted"
    [found] = listed(alice)
    assert (found["link"], found["labels"]["utm_source"], found["labels"]["browser"]) == (link.id, "news", "Firefox")
    assert sql("SELECT click = (SELECT at FROM visits) AS same FROM conversions") == [{"same": True}]


@pytest.mark.parametrize(
    "request_",
    [{"agent": "Googlebot/2.1"}, {"Purpose": "prefetch"}, {"method": "HEAD"}],
)
def test_bots_prefetches_and_head_requests_get_no_click_id(link: Short, request_: dict[str, Any]) -> None:
    assert "lm_click" not in str(link.ask(**request_).headers.get("Location"))


@pytest.mark.parametrize("header", ["DNT", "Sec-GPC"])
def test_who_wants_privacy_gets_no_click_id_and_is_not_counted(
    make_app: Any, alice: Client, link: Short, click: str, header: str
) -> None:
    app = make_app(respect_dnt="1")
    headers = {"User-Agent": FIREFOX, header: "1"}
    assert "lm_click" not in app.test_client().get(link.path, headers=headers).headers["Location"]
    name = f"HTTP_{header.upper().replace('-', '_')}"
    fetch(app, f"{setup(alice)['image']}?click={click}", environ_overrides={name: "1"})
    assert listed(alice) == []


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"url": "https://e.org/#top"}, "https://e.org/?lm_click={}#top"),
        ({"url": "https://e.org/?#top"}, "https://e.org/?lm_click={}#top"),
        ({"url": "https://e.org/?a=1#top"}, "https://e.org/?a=1&lm_click={}#top"),
        ({"url": "https://e.org/?a=1&lm_click=old"}, "https://e.org/?a=1&lm_click={}"),
        ({"url": "https://e.org/?lm%5Fclick=old&a=1"}, "https://e.org/?a=1&lm_click={}"),
        ({"url": f"https://e.org/{'x' * 2001}"}, f"https://e.org/{'x' * 2001}"),
        ({"parameters": [["b", "2"]]}, "https://example.com/page?b=2&lm_click={}"),
        ({"clickid": False}, "https://example.com/page"),
    ],
)
def test_the_id_is_a_parameter_of_the_target(short: Make, columns: dict[str, Any], expected: str) -> None:
    target = short(**{"clickid": True} | columns).redirect_target()
    assert target == expected.format(click_of(target))


def test_a_scan_that_leads_to_a_link_gets_its_click_id_and_counts_once(app: Flask, alice: Client, link: Short) -> None:
    url = alice.get(f"/api/url/{link.id}").get_json()["details"]["shorturl"]
    code, agent = encoded_path(alice, "link", url), {"User-Agent": FIREFOX}
    scanned = app.test_client().get(code, headers=agent).headers["Location"]
    target = app.test_client().get(scanned, headers=agent).headers["Location"]
    assert alice.post("/api/conversions", {"click": click_of(target)}).get_json()["result"] == "counted"
    assert "lm_click" not in app.test_client().get(scanned, headers={"User-Agent": "Googlebot/2.1"}).headers["Location"]
    link.redirect_target()
    link.wait_for_clicks(1)


def test_a_frame_gets_no_click_id(short: Make) -> None:
    assert "lm_click" not in short(clickid=True, type="frame").ask().text


def test_the_account_and_the_domain_turn_click_ids_on(alice: Client, short: Make, sql: Sql) -> None:
    link, branded = short(), short()
    branded.brand()
    sql("UPDATE domains SET clickid = true RETURNING 1")
    target = branded.app.test_client().get(
        branded.path, base_url="https://go.example.org", headers={"User-Agent": FIREFOX}
    )
    assert "lm_click" in target.headers["Location"]
    assert "lm_click" not in link.redirect_target()
    assert alice.put("/api/conversions/setup", {"clickid": True}).get_json()["data"]["clickid"] is True
    assert "lm_click" in link.redirect_target()


def test_an_event_and_an_order_count_once_and_without_an_order_once_for_a_click(
    alice: Client, link: Short, click: str
) -> None:
    def result(**sent: Any) -> str:
        answer = alice.post("/api/conversions", {"click": click} | sent).get_json()
        assert answer["counted"] == (answer["result"] == "counted") == (answer["id"] is not None)
        return str(answer["result"])

    assert [result(**SALE), result(**SALE)] == ["counted", "duplicate"]
    assert result(**SALE | {"order": "A-2"}) == "counted"
    assert [result(event="lead"), result(event="lead"), result(), result()] == ["counted", "duplicate"] * 2
    other = click_of(link.redirect_target(address="192.0.2.8"))
    assert [result(click=other, **SALE), result(click=other, event="lead")] == ["duplicate", "counted"]
    assert {row["event"] for row in listed(alice)} == {"conversion", "lead", "sale"}


def test_labels_follow_when_the_visit_is_stored_after_its_conversion(
    app: Flask, alice: Client, link: Short, sql: Sql
) -> None:
    now = round(datetime.now(UTC).timestamp(), 6)
    with app.app_context():
        click = clicks.click_id(link.id, now)
    assert alice.post("/api/conversions", {"click": click}).get_json()["result"] == "counted"
    assert listed(alice)[0]["labels"] == {}
    link.redirect_target(address=HOME)
    link.wait_for_clicks(1)
    sql("UPDATE visits SET at = to_timestamp(%(at)s) RETURNING 1", at=now)
    with app.app_context():
        conversions.add_labels()
    assert listed(alice)[0]["labels"]["utm_source"] == "news"


def test_the_purge_of_visits_keeps_conversions_and_their_labels(
    app: Flask, alice: Client, click: str, sql: Sql
) -> None:
    alice.post("/api/conversions", {"click": click})
    sql("DELETE FROM visits")
    sql("UPDATE conversions SET click = click - interval '91 days' RETURNING 1")
    [number] = [row["id"] for row in listed(alice)]
    with app.app_context():
        conversions.add_labels()
        assert [conversions.forget_visitors(100) for _ in range(2)] == [1, 0]
    assert listed(alice)[0]["labels"]["browser"] == "Firefox"
    assert [bytes(row["visitor"]) for row in sql("SELECT visitor FROM conversions")] == [number.to_bytes(8)]


@pytest.mark.parametrize("suffix", ["", "Z", ".250Z", "+00:00"])
def test_the_time_of_a_report_is_taken_in_the_forms_of_other_times(alice: Client, click: str, suffix: str) -> None:
    at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"
    answer = alice.post("/api/conversions", {"click": click, "at": f"{at}{suffix}" if suffix else at.replace("T", " ")})
    assert answer.get_json()["result"] == "counted"


@pytest.mark.parametrize(("days", "result"), [(30, "counted"), (31, "too_late")])
def test_a_click_counts_for_30_days(app: Flask, alice: Client, link: Short, days: int, result: str) -> None:
    at = datetime.now(UTC) - timedelta(days=days) + timedelta(minutes=1)
    with app.app_context():
        click = clicks.click_id(link.id, at.timestamp())
    assert alice.post("/api/conversions", {"click": click}).get_json()["result"] == result


@pytest.mark.parametrize(("day", "result"), [("2026-11-30", "counted"), ("2026-12-01", "too_late")])
def test_a_visitor_of_october_is_recognized_in_december_for_30_days(
    *, app: Flask, alice: Client, short: Make, sql: Sql, day: str, result: str
) -> None:
    """By the keys of two months, of which the first is that of October."""
    link, seen = short(), datetime(2026, 10, 31, 12, tzinfo=UTC)
    at = datetime.fromisoformat(f"{day} 11:00:00+00:00")
    with app.app_context():
        visitor = counting.visitor_of(link.id, HOME, FIREFOX, seen.timestamp())
    moved = datetime.now(UTC) - at  # the clock of the database
    sql(
        "INSERT INTO visitors VALUES (%(link)s, decode(%(visitor)s, 'hex'), %(seen)s) RETURNING 1",
        link=link.id, visitor=visitor, seen=seen + min(moved, timedelta()),
    )  # fmt: skip
    sent = {"link": link.id, "ip": HOME, "agent": FIREFOX, "at": f"{at + min(moved, timedelta()):%Y-%m-%d %H:%M:%S}"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "visitor_of", _shifted(counting.visitor_of, min(moved, timedelta())))
        assert alice.post("/api/conversions", sent).get_json()["result"] == result


def _shifted(visitor_of: Any, moved: timedelta) -> Any:
    return lambda link, address, agent, at: visitor_of(link, address, agent, at - moved.total_seconds())


def test_without_a_click_id_the_visitor_is_recognized(located: Flask, alice: Client, bob: Client, short: Make) -> None:
    link, agent = short(), f"{FIREFOX} {'App ' * 200}"  # of which visits have the beginning
    link.redirect_target(address=HOME, agent=agent)
    link.wait_for_clicks(1)
    body = {"link": link.id, "ip": f"::ffff:{HOME}", "agent": agent, "value": "5.50"}
    assert bob.post("/api/conversions", body).get_json()["code"] == "link_unknown"
    assert alice.post("/api/conversions", body | {"ip": "192.0.2.8"}).get_json()["result"] == "no_visit"
    assert [alice.post("/api/conversions", body).get_json()["result"] for _ in range(2)] == ["counted", "duplicate"]
    image = alice.get(f"/api/url/{link.id}/conversions").get_json()["data"]["image"]
    fetch(located, f"{image}?event=lead", agent=agent)
    fetch(located, f"{image}?event=lead&order=7", agent=ANDROID)
    fetch(located, image.replace(f"/{link.id}.", f"/{link.id + 1}."), agent=agent)
    assert [(row["event"], row["source"], row["value"]) for row in listed(alice)] == [
        ("lead", "page", None), ("conversion", "key", 5.5)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("at", "expected"),
    [("0001-01-01 00:00:00", ["no_visit"] * 2), ("1969-12-31 23:59:59", ["no_visit"] * 2),
     ("9999-12-31 23:59:59", ["counted", "duplicate"])],
)  # fmt: skip
def test_a_time_may_be_long_ago_and_one_in_the_future_is_now(
    *, alice: Client, link: Short, click: str, at: str, expected: list[str]
) -> None:
    reports = {"click": click}, {"link": link.id, "ip": HOME, "agent": FIREFOX}
    results = [alice.post("/api/conversions", sent | {"at": at}).get_json()["result"] for sent in reports]
    assert results == expected


@pytest.mark.parametrize(
    "wrong",
    [{"value": -1}, {"value": True}, {"value": 1e18}, {"value": "NaN"}, {"value": "1,5"}, {"currency": "EURO"},
     {"currency": "ABC"}, {"event": "x" * 51}, {"order": "x" * 101}, {"click": "x"}, {"at": "now"}, {"click": ""}],
)  # fmt: skip
def test_what_a_key_sends_must_be_exact(alice: Client, click: str, wrong: dict[str, Any]) -> None:
    assert alice.post("/api/conversions", {"click": click} | SALE | wrong).status_code == 400
    assert listed(alice) == []


def test_forged_foreign_and_deleted_ids_store_nothing(
    *, app: Flask, alice: Client, bob: Client, link: Short, click: str, sql: Sql
) -> None:
    script = setup(alice)["script"]
    with app.app_context():
        future = clicks.click_id(link.id, datetime.now(UTC).timestamp() + 3600)
    forged = [click[:-1] + ("A" if click[-1] != "A" else "B"), "B" + click[1:], "_" * clicks.LENGTH, future]
    for sent in forged:
        assert alice.post("/api/conversions", {"click": sent}).get_json()["result"] == "no_visit"
        send(app, script, {"click": sent})
    assert bob.post("/api/conversions", {"click": click}).get_json()["result"] == "no_visit"
    send(app, setup(bob)["script"], {"click": click})
    for body in ("", "[]", "{", "x" * 5000, {"click": 7}, {"click": click, "event": "x" * 3000}, "\xff"):
        send(app, script, body)
    send(app, "/c/unknown.js", {"click": click})
    suspend = "UPDATE users SET suspended = %(value)s WHERE id = %(id)s RETURNING 1"
    sql(suspend, value="all", id=alice.id)
    send(app, script, {"click": click})
    sql(suspend, value="no", id=alice.id)
    alice.delete(f"/api/url/{link.id}/delete")
    assert alice.post("/api/conversions", {"click": click}).get_json()["result"] == "no_visit"
    assert sql("SELECT FROM conversions") == []


def test_a_value_of_a_page_counts_up_to_the_bound_of_the_owner(app: Flask, alice: Client, click: str) -> None:
    def report(order: str, value: Any) -> None:
        send(app, setup(alice)["script"], {"click": click, "event": "sale", "order": order, "value": value})

    report("1", "29,90 €")
    alice.put("/api/conversions/setup", {"page_value": 100})
    report("2", "100,00")
    report("3", 100.01)
    report("4", "x")
    report([4], "1")  # type: ignore[arg-type]
    alice.put("/api/conversions/setup", {"page_value": 0})
    report("5", 1)
    assert [(row["value"], row["currency"], row["problem"]) for row in reversed(listed(alice))] == [
        (None, "EUR", "not_allowed"), (100, "", ""), (None, "", "too_large"), (None, "", "unreadable"),
        (1, "", ""), (None, "", "not_allowed"),
    ]  # fmt: skip
    assert {row["order"] for row in listed(alice)} == {"", *"12345"}


def test_of_many_reports_of_a_click_ten_are_stored_and_of_the_same_order_one(
    app: Flask, alice: Client, click: str, sql: Sql
) -> None:
    script = setup(alice)["script"]
    at_once(60, lambda n: send(app, script, {"click": click, "order": "A-1"}, address=f"192.0.2.{n}"))
    assert len(listed(alice)) == 1
    at_once(60, lambda n: send(app, script, {"click": click, "order": f"B-{n}"}, address=f"192.0.2.{n}"))
    assert len(sql("SELECT FROM conversions")) == conversions.MAX_OF_PAGE
    many = {"conversions": [{"click": click, "order": f"B-{n}"} for n in range(1000)]}  # some of which replace those
    answers = [alice.post("/api/conversions/batch", many).get_json() for _ in range(2)]
    assert [answer["counted"] for answer in answers] == [conversions.MAX_OF_CLICK, 0]
    assert [{row["result"] for row in answer["results"]} for answer in answers] == [
        {"counted", "too_many"}, {"duplicate", "too_many"}
    ]  # fmt: skip
    at_once(60, lambda n: send(app, script, {"click": click, "order": f"C-{n}"}, address=f"192.0.2.{n}"))
    assert len(sql("SELECT FROM conversions")) == conversions.MAX_OF_PAGE + conversions.MAX_OF_CLICK


def test_of_too_many_reports_of_a_click_the_first_are_stored(alice: Client, click: str) -> None:
    sent = {"conversions": [{"click": click, "order": f"N{n // 2}"} for n in range(2 * conversions.MAX_OF_CLICK + 20)]}
    results = [row["result"] for row in alice.post("/api/conversions/batch", sent).get_json()["results"]]
    assert results == ["counted", "duplicate"] * conversions.MAX_OF_CLICK + ["too_many"] * 20


def test_an_account_has_a_bound(alice: Client, click: str, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversions, "MAX_ROWS", 4)
    orders = [[{"click": click, "order": f"{number}-{n}"} for n in range(5)] for number in range(5)]
    at_once(5, lambda number: alice.post("/api/conversions/batch", {"conversions": orders[number]}))
    assert len(sql("SELECT FROM conversions")) == 4
    assert alice.post("/api/conversions", {"click": click}).get_json()["result"] == "too_many"


def test_of_20_reports_of_an_order_at_once_one_counts(alice: Client, link: Short, click: str) -> None:
    """Half of them are of one click, and each other one of its own."""
    link.redirect_target(address="192.0.2.8")
    clicks_ = [click] * 10 + [click_of(link.redirect_target(address=f"192.0.2.{n}")) for n in range(10)]
    results = at_once(20, lambda n: alice.post("/api/conversions", {"click": clicks_[n]} | SALE).get_json()["result"])
    assert sorted(results) == ["counted"] + ["duplicate"] * 19


def test_a_key_replaces_what_anybody_may_report(app: Flask, alice: Client, link: Short, click: str) -> None:
    """A guess of the next number of an order must neither hide it nor claim it for another link."""
    other, script = click_of(link.redirect_target(address="192.0.2.8")), setup(alice)["script"]
    for sent in ({"click": other, "event": "sale", "order": "A-1", "value": 1}, {"click": click, "event": "lead"}):
        send(app, script, sent)
    assert alice.post("/api/conversions", {"click": "x" * 24} | SALE).get_json()["result"] == "no_visit"
    guessed = listed(alice)
    assert [row["source"] for row in guessed] == ["page", "page"]
    for sent in ({"click": click} | SALE, {"click": click, "event": "lead"}):
        results = [alice.post("/api/conversions", sent).get_json()["result"] for _ in range(2)]
        assert results == ["counted", "duplicate"]
        send(app, script, sent)
    lead, sale = listed(alice)
    assert [lead["id"], sale["id"]] == [row["id"] for row in guessed]
    assert (lead["source"], sale["source"], sale["value"], sale["click"]) == ("key", "key", 29.9, lead["click"])


def test_a_key_of_a_domain_replaces_nothing_of_other_links(
    *, app: Flask, alice: Client, click: str, make_key: Callable[..., Client], sql: Sql
) -> None:
    send(app, setup(alice)["script"], {"click": click} | SALE)
    domain = factories.domain(sql, alice.id)
    own = factories.link(sql, alice.id)
    sql("UPDATE links SET domain_id = %(domain)s WHERE id = %(own)s RETURNING 1", domain=domain, own=own)
    with app.app_context():
        sent = {"click": clicks.click_id(own, datetime.now(UTC).timestamp())} | SALE
    results = [
        client.post("/api/conversions", sent).get_json()["result"]
        for client in (make_key(alice, domains=[domain]), alice)
    ]
    assert results == ["duplicate", "counted"]


def test_reports_at_once_answer_each_and_repeat_with_a_key(alice: Client, click: str) -> None:
    body = {"conversions": [{"click": click} | SALE, {"click": click} | SALE, {"click": "x" * 24}]}
    answers = [
        alice.post("/api/conversions/batch", body, headers={"Idempotency-Key": "1"}).get_json() for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert [row["result"] for row in answers[0]["results"]] == ["counted", "duplicate", "no_visit"]
    assert alice.post("/api/conversions/batch", {"conversions": [{"click": click, "value": -1}]}).status_code == 400
    lead = {"click": click, "event": "lead"}
    answer = alice.post("/api/conversions/batch", {"conversions": [lead | {"at": "2020-01-01 00:00:00"}, lead]})
    assert [row["result"] for row in answer.get_json()["results"]] == ["no_visit", "counted"]


def test_no_reports_are_none(alice: Client) -> None:
    answer = alice.post("/api/conversions/batch", {"conversions": []})
    assert (answer.status_code, answer.get_json()["counted"], answer.get_json()["results"]) == (200, 0, [])


def test_a_csv_is_imported(alice: Client, click: str) -> None:
    rows = ("Click,Event,Order,Value,Link,IP,Agent,Note", f'{click},sale,1,"29,90",,,,',
            f'{click},sale,1,5,,,,"two\nlines"', f"{click},,,x,,,,", ",,,,9999,192.0.2.7,Firefox,",
            f",,,,{'1' * 5000},192.0.2.7,Firefox,")  # fmt: skip
    text = "\r\n".join(rows)
    answer = alice.post("/api/conversions/import", data=text.encode(), headers={"Content-Type": "text/csv"}).get_json()
    assert answer["counted"] == 1
    failed = [(4, "duplicate"), (5, "invalid"), (6, "no_link"), (7, "invalid")]
    assert [(row["line"], row["result"]) for row in answer["failed"]] == failed
    assert listed(alice)[0]["value"] == 29.9
    assert (
        alice.post("/api/conversions/import", data=b"\xff\xfe", headers={"Content-Type": "text/csv"}).status_code == 400
    )


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_csv_of_a_spreadsheet_is_imported(alice: Client, click: str, separator: str) -> None:
    text = f"click;event;value\n{click};sale;29,90".replace(";", separator)
    answer = alice.post("/api/conversions/import", data=text.encode(), headers={"Content-Type": "text/csv"}).get_json()
    assert (answer["counted"], answer["failed"]) == (1, [])
    assert listed(alice)[0]["value"] == 29.9


def test_a_csv_warns_of_each_column_that_is_ignored_once(alice: Client, click: str) -> None:
    text = "click,event,amount,curency,empty,,link\n" + "".join(f"{click},e{n},5,EUR,,x,,more\n" for n in range(60))
    headers = {"Content-Type": "text/csv"}
    answer = alice.post("/api/conversions/import", data=text.encode(), headers=headers).get_json()
    assert (answer["counted"], answer["warnings"]) == (60, [
        "Columns that have no name in the first line were ignored.",
        "The member 'amount' is unknown and was ignored. Did you mean 'value'?",
        "The member 'curency' is unknown and was ignored. Did you mean 'currency'?",
    ])  # fmt: skip
    strict = headers | {"Prefer": "handling=strict"}
    answer = alice.post("/api/conversions/import", data=text.replace(",e", ",f").encode(), headers=strict)
    assert (answer.status_code, len(listed(alice, "limit=1000"))) == (400, 60)


def test_a_conversion_is_listed_read_refunded_and_deleted(alice: Client, bob: Client, click: str) -> None:
    row_id = alice.post("/api/conversions", {"click": click} | SALE).get_json()["id"]
    path = f"/api/conversion/{row_id}"
    read = alice.get(path)
    assert (read.get_json()["data"]["value"], read.get_json()["data"]["order"]) == (29.9, "A-1")
    changed = alice.put(f"{path}/update", {"refund": 10.5}, headers={"If-Match": read.headers["ETag"]})
    assert changed.get_json()["data"]["value"] == 19.4
    assert alice.put(f"{path}/update", {"refund": 1}, headers={"If-Match": read.headers["ETag"]}).status_code == 412
    assert alice.put(f"{path}/update", {"refund": 20}).get_json()["code"] == "refund_too_large"
    assert alice.put(f"{path}/update", {"value": 5, "currency": "USD"}).get_json()["data"]["currency"] == "USD"
    for other in ({"value": 5}, {"currency": "USD"}):  # 1 USD is no part of 5 EUR
        assert alice.put(f"{path}/update", {"refund": 1} | other).status_code == 400
    assert [bob.get(path).status_code, bob.put(f"{path}/update", {"value": 1}).status_code] == [404, 404]
    for query, number in {"event=sale": 1, "event=lead": 0, "source=key&currency=USD": 1, "order=A-1&link=1": 0,
                          "from=2020-01-01&to=2020-02-01": 0}.items():  # fmt: skip
        assert len(listed(alice, query)) == number, query
    lines = alice.get("/api/conversions/export.csv").text.splitlines()
    assert (lines[0].split(",")[:4], len(lines)) == (["id", "link", "event", "order"], 2)
    assert bob.delete(f"{path}/delete").status_code == 404
    assert alice.delete(f"{path}/delete").status_code == 200
    assert listed(alice) == []


def test_an_address_has_60_reports_a_minute(app: Flask, alice: Client, click: str, sql: Sql) -> None:
    sql(
        """
        INSERT INTO rate_windows (bucket, count, until) VALUES ('pixel:192.0.2.7', 60, now() + interval '50 seconds')
        RETURNING 1
        """
    )
    send(app, setup(alice)["script"], {"click": click})
    assert listed(alice) == []


def test_the_script_is_small_and_has_the_name_of_the_parameter(make_app: Any, alice: Client) -> None:
    answer = make_app(click_parameter="ref").test_client().get(setup(alice)["script"])
    assert (answer.mimetype, answer.headers["Cross-Origin-Resource-Policy"]) == ("text/javascript", "cross-origin")
    assert len(answer.data) <= 1024
    assert b'"ref"' in answer.data
