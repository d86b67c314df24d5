"""Statistics over time: selections, filters and order. The model in test_stats_model.py has the numbers."""

from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from flask import Flask

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.reports import TODAY, date, report, rows
from tests.support.shortlinks import PAGE, Make
from tests.support.targets import FIREFOX
from tests.support.visited import Store, Visited
from tests.support.worlds import without_request_id

UTM = ("utm_source", "utm_medium", "utm_campaign")


# --- rows and totals


def test_without_parameters_the_last_30_days_are_counted_by_day(alice: Client, visited: list[Visited]) -> None:
    answer = report(alice)
    expected = {date(3): 1, date(2): 2}
    assert answer["data"] == {
        "rows": [{"time": date(ago), "clicks": expected.get(date(ago), 0)} for ago in range(29, -1, -1)],
        "totals": {"clicks": 3},
    }
    assert answer["meta"] == {
        "metrics": ["clicks"],
        "by": ["time:day"],
        "ids": None,
        "campaign": None,
        "channel": None,
        "domain": None,
        "from": f"{date(29)}T00:00:00+00:00",
        "to": f"{date(-1)}T00:00:00+00:00",
        "period": "30d",
        "timezone": "UTC",
        "filters": {},
        "bots": "exclude",
        "order": "time",
        "limit": 333,
        "truncated": False,
        "source": "rollups",
        "detailed_since": None,
        "utc_days_before": date(400),
        "visitors_null_because": None,
        "value_null_because": None,
    }


def test_an_account_without_visits_has_rows_of_zeros(alice: Client) -> None:
    assert rows(alice, "period=7d") == [{"time": date(ago), "clicks": 0} for ago in range(6, -1, -1)]
    assert report(alice, "by=country")["data"] == {"rows": [], "totals": {"clicks": 0}}
    assert rows(alice, "period=all&metrics=visitors") == [{"time": date(0), "visitors": 0}]


def test_utm_labels_are_those_of_the_short_url_or_else_of_the_link(app: Flask, alice: Client) -> None:
    added = [{"name": "utm_source", "value": "letter"}, {"name": "utm_medium", "value": "email"}]
    alice.add("/api/url/add", {"url": "https://example.com", "custom": "plain"})
    alice.add("/api/url/add", {"url": "https://example.com", "custom": "tagged", "parameters": added})
    sent = ("plain", "plain?utm_source=" + quote("\0 \u202ead\n"), "plain?x&utm_source=" + 200 * "a",
            "tagged", "tagged?utm_source=ads&utm_campaign=%ff%ed%a0%80",
            "tagged?utm_source=&utm_medium=print")  # fmt: skip
    for path in sent:
        assert app.test_client().get(f"/{path}", headers={"User-Agent": FIREFOX}).status_code == 302
    assert app.extensions["linkmgr_visit_queue"].flush()
    counts = {name: {row[name]: row["clicks"] for row in rows(alice, f"by={name}")} for name in UTM}
    assert counts["utm_source"] == {"letter": 2, "ad": 1, "ads": 1, "a" * 100: 1, "Unknown": 1}
    assert counts["utm_medium"] == {"Unknown": 3, "email": 2, "print": 1}
    assert counts["utm_campaign"] == {"Unknown": 5, "\ufffd" * 4: 1}
    assert rows(alice, "by=utm_medium&utm_source=letter,ads") == [{"utm_medium": "email", "clicks": 2},
                                                                  {"utm_medium": "print", "clicks": 1}]  # fmt: skip


@pytest.mark.parametrize(
    ("members", "path", "expected"),
    [
        ({}, "", ("Unknown", "Unknown", "Unknown")),
        ({"url": f"{PAGE}?utm_source=own&UTM_medium=x#utm_campaign=y"}, "", ("own", "Unknown", "Unknown")),
        ({"url": f"{PAGE}?utm_source=own"}, "?utm_source=sent", ("sent", "Unknown", "Unknown")),
        ({"url": f"{PAGE}?utm_source=own&utm_medium=own", "parameters": [["utm_source", "added"]]},
         "?utm_campaign=sent", ("added", "own", "sent")),
        ({"url": PAGE, "devicetarget": {"windows": f"{PAGE}?utm_source=windows"}}, "",
         ("windows", "Unknown", "Unknown")),
        ({"url": f"{PAGE}?utm_source=own", "expiredurl": f"{PAGE}?utm_source=over"}, "",
         ("own", "Unknown", "Unknown")),
        ({}, "?utm_source=a&amp;utm_medium=b&amp;utm_campaign=c%26amp;", ("a", "b", "c&amp;")),
        ({"url": f"{PAGE}?x&amp;utm_medium=b"}, "", ("Unknown", "b", "Unknown")),
        ({"url": f"{PAGE}?utm_source=own", "forwardquery": True}, "?utm_source=sent", ("sent", "Unknown", "Unknown")),
        ({"url": f"{PAGE}?utm_source=own"}, "?utm_source=", ("own", "Unknown", "Unknown")),
    ],
)  # fmt: skip
def test_utm_labels_are_those_of_the_short_url_then_of_the_target_that_is_visited(
    short: Make, sql: Sql, members: dict[str, Any], path: str, expected: tuple[str, str, str]
) -> None:
    link = short(**members)
    link.redirect_target(path=path)
    link.wait_for_clicks(1)
    [stored] = sql(
        """
        SELECT visit_label(v, 'utm_source') AS source, visit_label(v, 'utm_medium') AS medium,
               visit_label(v, 'utm_campaign') AS campaign
          FROM visits v WHERE tracked_id = %(id)s
        """,
        id=link.id,
    )
    assert tuple(stored.values()) == expected


def test_utm_labels_of_a_qr_code_are_those_of_its_url(app: Flask, alice: Client, sql: Sql) -> None:
    data = "https://example.com/?utm_source=poster"
    code = alice.post("/api/qr/add", {"type": "link", "data": data}).get_json()
    path = urlsplit(code["link"]).path.replace("/qr/", "/q/")
    assert app.test_client().get(path, headers={"User-Agent": FIREFOX}).status_code == 302
    assert app.extensions["linkmgr_visit_queue"].flush()
    assert rows(alice, "by=utm_source") == [{"utm_source": "poster", "clicks": 1}]


# --- selections


def test_a_selection_counts_its_targets_only(alice: Client, sql: Sql, store: Store, link: int) -> None:
    code, other = factories.qr(sql, alice.id), factories.link(sql, alice.id)
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    domain = factories.domain(sql, alice.id)
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=domain)[0]["host"]
    sql("UPDATE links SET campaign = %(to)s, domain_id = %(domain)s WHERE id = %(id)s RETURNING 1",
        to=campaign, domain=domain, id=link)  # fmt: skip
    for kind, item in (("links", link), ("qr", code)):
        assert alice.post(f"/api/channel/{channel}/assign/{kind}/{item}").status_code == 200
    store([Visited(link, TODAY), Visited(code, TODAY), Visited(code, TODAY), Visited(other, TODAY)])
    for query, expected in {
        "": {link: 1, code: 2, other: 1},
        f"ids={link},{other},{link}": {link: 1, other: 1},
        f"campaign={campaign}": {link: 1},
        f"channel={channel}": {link: 1, code: 2},
        f"channel={channel}&ids={code},{other}": {code: 2},
        f"domain={host}": {link: 1},
        f"domain=https://{host.upper()}/": {link: 1},
        "domain=127.0.0.1": {other: 1},
        f"domain={BASE_URL}": {other: 1},
        f"domain={host}&ids={other}": {},
    }.items():
        for metrics in ("clicks", "clicks,visitors"):
            answer = report(alice, f"by=target&metrics={metrics}&{query}")
            assert {row["target"]: row["clicks"] for row in answer["data"]["rows"]} == expected, (query, metrics)
            assert answer["data"]["totals"]["clicks"] == sum(expected.values())
    # Labels of the rows that were visited: our own host for a link without a domain, and null for a QR code.
    for name, labels in {
        "campaign": {campaign: 1, None: 3},
        "channel": {channel: 3, None: 1},
        "domain": {host: 1, "127.0.0.1": 1, None: 2},
    }.items():
        for by in (name, f"time:month,{name}", f"{name},country", f"browser,{name}"):
            counted = report(alice, f"by={by}&period=7d&metrics=clicks,visitors&order=-{name}")["data"]
            clicks: Counter[Any] = Counter()
            for row in counted["rows"]:
                clicks[row[name]] += row["clicks"]
            assert (clicks, counted["totals"]["clicks"]) == (labels, 4), by
    second = factories.channel(sql, alice.id)
    alice.post(f"/api/channel/{second}/assign/qr/{code}")
    counted = report(alice, "by=channel")["data"]
    assert {row["channel"]: row["clicks"] for row in counted["rows"]} == {channel: 3, second: 2, None: 1}
    assert counted["totals"] == {"clicks": 4}


def test_names_1_names_links_codes_campaigns_and_channels(alice: Client, sql: Sql, store: Store, link: int) -> None:
    title, target = "Summer sale", "https://example.com/shoes?a=1"
    titled = alice.add("/api/url/add", {"url": PAGE, "metatitle": title, "custom": "sale"})
    plain = alice.add("/api/url/add", {"url": target, "custom": "shoes"})
    code = alice.add("/api/qr/add", {"type": "text", "data": "x", "name": "Poster"})
    campaign, channel = (alice.add(f"/api/{word}/add", {"name": "June"}) for word in ("campaign", "channel"))
    alice.post(f"/api/campaign/{campaign}/assign/{titled}")
    alice.post(f"/api/channel/{channel}/assign/links/{titled}")
    store([Visited(tracked, TODAY) for tracked in (titled, plain, code, link)])
    alice.call("DELETE", f"/api/url/{link}/delete")
    named = {
        titled: (title, f"{BASE_URL}/sale"),
        plain: ("example.com/shoes", f"{BASE_URL}/shoes"),
        code: ("Poster", None),
        link: (None, None),
    }
    for by in ("target", "country,target", "target,campaign"):
        counted = rows(alice, f"by={by}&names=1&period=7d")
        shown = {row["target"]: (row["target_name"], row["shorturl"]) for row in counted if row["target"]}
        assert shown.items() >= {target: named[target] for target in (titled, plain, code)}.items(), by
    assert shown.get(link, (None, None)) == named[link]
    for name, label in (("campaign", campaign), ("channel", channel)):
        for by in (name, f"country,{name}"):
            found = {row[name]: row[f"{name}_name"] for row in rows(alice, f"by={by}&names=1")}
            assert found == {label: "June", None: None}, by
    assert "target_name" not in rows(alice, "by=target")[0]


def test_another_users_rows_are_the_same_404_as_missing_ones(alice: Client, bob: Client, sql: Sql, link: int) -> None:
    own = factories.link(sql, bob.id)
    for name, make in {"ids": factories.link, "campaign": factories.campaign, "channel": factories.channel}.items():
        foreign = make(sql, alice.id)
        answers = [bob.get(f"/api/stats?{name}={value}") for value in (foreign, 2**62, 2**70, 0)]
        assert [answer.status_code for answer in answers] == [404] * 4
        assert len(set(map(without_request_id, answers))) == 1
    assert bob.get(f"/api/stats?ids={own},{link}").status_code == 404
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=factories.domain(sql, alice.id))[0]["host"]
    answers = [bob.get(f"/api/stats?domain={name}") for name in (host, "missing.example.com")]
    assert [answer.get_json()["code"] for answer in answers] == ["domain_unknown"] * 2


def test_a_deleted_link_stays_in_the_numbers_of_its_account(
    alice: Client, visited: list[Visited], link: int, run_jobs: Callable[[], None]
) -> None:
    assert alice.delete(f"/api/url/{link}/delete").status_code == 200
    run_jobs()
    assert report(alice)["data"]["totals"] == {"clicks": 3}
    assert rows(alice, "by=target") == [{"target": link, "clicks": 3}]


# --- filters


@pytest.mark.parametrize(
    ("query", "clicks"),
    [
        ("country=germany", 2),
        ("country=DE", 2),
        ("country=de,PE", 3),
        ("country=de&country=PE", 3),
        ("country=DE&country=PE&country=-PE&by=browser&by=os", 2),
        ("country=-DE", 1),
        ("country=DE,PE,-PE", 2),
        ('referrer="Direct, email and other"', 1),
        ('referrer="-Direct, email and other"', 2),
        ('referrer=-"Direct, email and other"', 2),
        ('referrer=t.co, -"Direct, email and other"', 2),
        ('referrer=t.co, "Direct, email and other"', 3),
        ("country=FR, DE", 2),
        ("country= DE", 2),
        ("device=phone&country=-PE&by=browser", 1),
        ("city=berlin&language=de&os=linux&browser=firefox", 3),
        ("language=german,fr", 3),
        ("language=german,French,Haitian,mi,tzm", 3),
        ("country=Unknown,other", 0),
        ("country=Bolivia", 0),
        ("country=Türkiye,Turkey", 0),
        ("language=-unknown,-Other", 3),
    ],
)
def test_a_filter_includes_and_excludes_labels(alice: Client, visited: list[Visited], query: str, clicks: int) -> None:
    ids = f"ids={visited[0].tracked_id}"
    for other in ("metrics=clicks", "metrics=clicks,visitors", ids, f"{ids}&metrics=visitors,clicks"):
        answer = report(alice, f"{query}&{other}")
        assert answer["data"]["totals"]["clicks"] == clicks
        assert sum(row["clicks"] for row in answer["data"]["rows"]) == clicks


# --- order and limit


def test_rows_are_sorted_by_a_column(alice: Client, visited: list[Visited]) -> None:
    query = f"by=time:day,country&from={date(3)}&to={date(1)}"
    assert [row["country"] for row in rows(alice, f"{query}&order=-country")] == ["Peru", "Peru", "Germany", "Germany"]
    assert [row["time"] for row in rows(alice, f"{query}&order=-time")] == [date(2), date(2), date(3), date(3)]
    assert [row["clicks"] for row in rows(alice, f"{query}&order=clicks")] == [0, 1, 1, 1]
    assert [row["country"] for row in rows(alice, "by=country")] == ["Germany", "Peru"]


def test_the_limit_keeps_the_labels_with_the_most_clicks(alice: Client, visited: list[Visited]) -> None:
    answer = report(alice, "by=country&limit=1&order=country")
    assert answer["data"] == {
        "rows": [{"country": "Germany", "clicks": 2, "country_code": "DE"}], "totals": {"clicks": 3}
    }  # fmt: skip
    assert report(alice, "by=country&country=dE,-PE")["data"]["rows"] == answer["data"]["rows"]
    assert answer["meta"]["truncated"] is True
    answer = report(alice, "by=time:day,country&limit=1&period=7d")
    assert [row["country"] for row in answer["data"]["rows"]] == ["Germany"] * 7


def test_a_response_has_at_most_10000_rows(alice: Client, store: Store, link: int) -> None:
    store([Visited(link, TODAY, referrer=f"site{number}.example") for number in range(500)])
    answer = report(alice, "by=time:day,referrer&period=90d&limit=10000")
    assert answer["meta"]["limit"] == 111
    assert answer["meta"]["truncated"] is True
    assert len(answer["data"]["rows"]) == 90 * 111
    assert answer["data"]["totals"] == {"clicks": 500}
