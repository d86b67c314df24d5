"""Rules of links: what they take, and the visitors that they match."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from marshmallow import ValidationError

from linkmgr.visits.rules import CONDITIONS, Rules, first_match
from linkmgr.visits.visitor import Visitor
from tests.conftest import Client
from tests.support.geoip import CHILE, LIMA, PERU
from tests.support.pages import details
from tests.support.shortlinks import ANDROID, PAGE, TARGET, Make, refused
from tests.support.targets import FIREFOX, IPHONE

OTHER = "https://example.com/other"
CASE = "must be an object with from or "


def rules(**when: Any) -> list[dict[str, Any]]:
    return [{"when": when, "url": OTHER}]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ({"country": [" Germany ", "AT", "AT"], "city": ["São Paulo"]}, {"country": ["Germany", "AT"]}),
        ({"ip": ["192.0.2.7", "2001:DB8::5/32", "::ffff:192.0.2.0/120"]},
         {"ip": ["192.0.2.7/32", "2001:db8::/32", "192.0.2.0/24"]}),
        ({"referrer": ["https://News.example.com/a", "bücher.example."], "os": ["Fedora", "Red Hat"]},
         {"referrer": ["news.example.com", "xn--bcher-kva.example"]}),
        ({"dates": {"from": "2026-12-01", "until": "2026-12-24"}},
         {"dates": {"from": "2026-12-01 00:00:00", "until": "2026-12-24 23:59:59"}}),
        ({"weekdays": ["Monday"], "hours": {"until": "09:30", "from": None}, "timezone": "Europe/Berlin"},
         {"weekdays": ["monday"], "hours": {"until": "09:30"}}),
        ({"clicks": {"from": 0, "to": 2**63 - 1}, "os": None}, {"clicks": {"from": 0, "to": 2**63 - 1}}),
    ],
)  # fmt: skip
def test_rules_are_stored_in_one_form_and_can_be_sent_back(
    alice: Client, sent: dict[str, Any], stored: dict[str, Any]
) -> None:
    kept = rules(**{name: value for name, value in (sent | stored).items() if value is not None})
    link_id = alice.add("/api/url/add", {"url": PAGE, "rules": rules(**sent)})
    assert details(alice, link_id)["rules"] == kept
    assert alice.put(f"/api/url/{link_id}/update", {"rules": kept}).get_json()["details"]["rules"] == kept
    assert alice.put(f"/api/url/{link_id}/update", {"rules": []}).get_json()["details"]["rules"] == []


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ({}, f".when must have a condition: {', '.join(CONDITIONS)}"),
        ({"timezone": "UTC"}, f".when must have a condition: {', '.join(CONDITIONS)}"),
        ({"countri": ["DE"]}, f".when.countri must be a condition: {', '.join(CONDITIONS)}"),
        ({"country": ["germny"]}, ".when.country has the value 'germny', which is neither an English name nor an ISO "
         "code of a country, so it matches no visitor (did you mean 'germany'?)"),
        ({"os": ["Andriod"]}, ".when.os has the value 'Andriod', which is not a model, maker, system or kind of "
         "device, so it matches no visitor (did you mean 'android'?)"),
        ({"language": ["xx-yy"]}, ".when.language has the value 'xx-yy', which is not a language that browsers send. "
         "Use a code such as fr or pt-BR, or an English name"),
        *(({name: value}, f".when.{name} must be an array of 1 to 50 texts of 1 to 100 characters on one line")
          for name in ("city", "query")
          for value in ("Lima", [], [""], [" "], [5], ["a\nb"], ["x" * 101], ["x"] * 51, {"Lima": 1})),
        *(({"dates": value}, f".when.dates {CASE}until, which are times such as 2030-12-31 or 2030-12-31 18:00, "
           "without an offset")
          for value in ({}, {"from": ""}, {"from": "1.1.2030"}, {"to": "2030-01-01"}, {"until": "2030-01-01 00:00Z"},
                        {"from": "2030-02-30"}, {"from": 5}, {"from": "20300101"}, ["2030-01-01"])),
        *(({"hours": value}, f".when.hours {CASE}until, which are times of day such as 09:00")
          for value in ({"from": "24:00"}, {"from": "9:00"}, {"from": ["09:00"]}, {"from": "09:00", "to": "10:00"})),
        *(({"clicks": value}, f".when.clicks {CASE}to, which are integers from 0")
          for value in ({"from": -1}, {"from": True}, {"to": "5"}, {"to": 2**63}, {"until": 5}, 5)),
        *(({"ip": [value]}, ".when.ip must be IP addresses or networks such as 192.0.2.7 or 2001:db8::/32")
          for value in ("192.0.2.256", "fe80::1%eth0", "example.com")),
        *(({"referrer": [value]}, f".when.referrer has the value '{value}', which is not a host such as "
           "news.example.com") for value in ("a b", ".", "https://", "[::1", "x" * 64 + ".de")),
        ({"dates": {"from": "2030-01-02", "until": "2030-01-01"}}, ".when.dates must have a from that is not after "
         "until"),
        ({"clicks": {"from": 1, "to": 0}}, ".when.clicks must have a from that is not after to"),
        ({"weekdays": ["mon"]}, ".when.weekdays must be from the list monday, tuesday, wednesday, thursday, friday, "
         "saturday, sunday; mon is not"),
        ({"city": ["Lima"], "timezone": "Berlin"}, ".when.timezone must be an IANA time zone such as Europe/Berlin"),
    ],
)  # fmt: skip
def test_a_refused_condition_is_named(app: Flask, when: dict[str, Any], problem: str) -> None:
    with app.test_request_context(), pytest.raises(ValidationError) as error:
        Rules().deserialize([*rules(city=["Lima"]), *rules(**when)])
    assert error.value.messages == [f"[1]{problem}"]


def test_a_request_compares_few_wrong_names_with_those_that_there_are(alice: Client) -> None:
    links = [{"url": PAGE, "rules": rules(country=["germny"], timezone="Europe/Berln")} for _ in range(60)]
    text = alice.post("/api/urls/bulk", {"urls": links}).text
    texts = text.count("(did you mean"), text.count("such as Europe/Berlin,")
    assert texts == (50, 120)  # in `message` and in `errors`


def test_each_problem_of_rules_is_an_error_with_its_place(alice: Client) -> None:
    sent = [*rules(city=["Lima"]), {"when": {"weekdays": ["x"]}, "url": "x"}, {}]
    answer = alice.post("/api/url/add", {"url": PAGE, "rules": sent})
    fields = [error["field"] for error in answer.get_json()["errors"]]
    assert fields == ["rules[1].when.weekdays", "rules[1].url", "rules[2].when", "rules[2].url"]
    assert refused(alice, rules=sent[2:]) == "rules[0].when is required; rules[0].url is required."


@pytest.mark.parametrize(
    ("when", "matching", "others"),
    [
        ({"country": ["PE", "Chile"]}, [{"address": PERU}, {"address": CHILE}], [{}, {"address": "x"}]),
        ({"city": ["lima"]}, [{"address": LIMA}], [{"address": PERU}]),
        ({"device": ["phone", "iPad"]}, [{"agent": IPHONE}, {"agent": ANDROID}], [{}, {"agent": ""}]),
        ({"os": ["iOS", "Windows"]}, [{"agent": IPHONE}, {}], [{"agent": ANDROID}]),
        ({"browser": ["firefox"]}, [{}], [{"agent": IPHONE}]),
        ({"language": ["French", "pt-BR"]}, [{"Accept_Language": "fr-CH, de;q=0.9"}, {"Accept_Language": "pt-BR"}],
         [{}, {"Accept_Language": "de, fr;q=0.8"}, {"Accept_Language": "pt-PT"}]),
        ({"query": ["ref=A&B", "debug"]}, [{"path": "?x&ref=a%26b"}, {"path": "?debug"}, {"path": "?debug=0"}],
         [{}, {"path": "?ref=a"}, {"path": "?bug"}]),
        ({"referrer": ["example.com"]}, [{"Referer": "https://example.com/x"}, {"Referer": "http://a.b.EXAMPLE.com"}],
         [{}, {"Referer": "https://notexample.com"}, {"Referer": "http://[x"}, {"Referer": "https://example.com.org"}]),
        ({"referrer": ["xn--bcher-kva.example"]}, [{"Referer": "https://a.b\xc3\xbccher.example/"}], [{}]),
        ({"ip": ["192.0.2.0/24", "2001:db8::/32"]}, [{"address": "192.0.2.9"}, {"address": "2001:db8::9"},
         {"address": "::ffff:192.0.2.9"}], [{"address": "192.0.3.9"}, {"address": "x"}, {"address": "2001:db9::"}]),
        ({"dates": {"from": "2020-01-01 00:00:00"}}, [{}], []),
        ({"dates": {"until": "2020-01-01 23:59:59"}}, [], [{}]),
        ({"clicks": {"to": 0}}, [{}], []),
        ({"clicks": {"from": 1}}, [], [{}]),
        ({"country": ["PE"], "os": ["iOS"]}, [{"address": PERU, "agent": IPHONE}],
         [{"address": PERU}, {"agent": IPHONE}]),
        ({"city": ["Lima"], "later": ["unknown"]}, [{"address": LIMA}], [{}]),
        ({"hours": {"from": "00:00"}, "timezone": "Mars/Base"}, [{}], []),
    ],
)  # fmt: skip
def test_a_rule_decides_for_the_visitors_that_it_matches(
    short: Make, when: dict[str, Any], matching: list[dict[str, str]], others: list[dict[str, str]]
) -> None:
    link = short(rules=rules(**when))
    for request in matching:
        assert link.redirect_target(**request) == OTHER, request
    for request in others:
        assert link.redirect_target(**request) == TARGET, request


def test_the_first_rule_precedes_later_ones_and_the_targets(short: Make) -> None:
    several = [{"when": {"os": [name]}, "url": f"{OTHER}?{name}"} for name in ("iOS", "Mac", "Apple")]
    link = short(rules=several, devicetarget={"iphone": PAGE + "?device"}, parameters=[["a", "1"]])
    assert link.redirect_target(agent=IPHONE) == f"{OTHER}?iOS&a=1"
    assert link.redirect_target(agent=FIREFOX) == f"{TARGET}?a=1"
    link = short(rules=several[1:2], devicetarget={"iphone": PAGE + "?device"})
    assert link.redirect_target(agent=IPHONE) == f"{PAGE}?device"


@pytest.mark.parametrize("time", ["0001-01-01 00:00:00", "9999-12-31 23:59:59", "1969-12-31 23:59:59"])
def test_a_try_refuses_times_that_some_time_zones_do_not_have(alice: Client, time: str) -> None:
    rule = {"when": {"weekdays": ["monday"], "timezone": "Pacific/Kiritimati"}, "url": "https://example.com/monday"}
    link_id = alice.add("/api/url/add", {"url": "https://example.com/", "rules": [rule]})
    answer = alice.post(f"/api/url/{link_id}/try", {"time": time})
    assert (answer.status_code, answer.get_json()["errors"][0]["field"]) == (400, "time")
    assert alice.post(f"/api/url/{link_id}/try", {"time": "9998-12-31 23:59:59"}).status_code == 200


NIGHT = {"from": "22:00", "until": "02:00"}


@pytest.mark.parametrize(
    ("days", "hours", "matching", "others"),
    [
        (["friday"], NIGHT, ["03-27 22:00", "03-27 23:59", "03-28 00:00", "03-28 01:59"],
         ["03-27 00:30", "03-27 21:59", "03-28 02:00", "03-28 22:00"]),
        (["sunday"], NIGHT, ["03-30 00:30"], ["03-29 00:30"]),  # the clocks change on 29 March
        (["saturday"], NIGHT, ["03-29 01:30"], ["03-30 00:30"]),
        (["sunday"], NIGHT, ["10-26 00:30"], ["10-25 00:30"]),  # and on 25 October
        (["friday", "saturday"], NIGHT, ["03-28 01:00", "03-28 22:00", "03-29 01:00"], ["03-27 01:00"]),
        (["friday"], {"from": "09:00", "until": "09:00"}, ["03-27 09:00", "03-28 08:59"],
         ["03-27 08:59", "03-28 09:00"]),
        (["friday"], {"from": "00:00", "until": "02:00"}, ["03-27 00:30"], ["03-28 00:30"]),
        (["friday"], {"until": "02:00"}, ["03-27 00:30"], ["03-28 00:30"]),
        (["friday"], {"from": "22:00"}, ["03-27 23:00"], ["03-27 00:30", "03-28 00:00"]),
        (["friday"], {"from": "22:00", "until": "00:00"}, ["03-27 23:59"], ["03-28 00:00"]),
    ],
)  # fmt: skip
def test_hours_after_midnight_belong_to_the_day_on_which_they_began(
    days: list[str], hours: dict[str, str], matching: list[str], others: list[str]
) -> None:
    wanted = rules(weekdays=days, hours=hours, timezone="Europe/Berlin")
    for time in (*matching, *others):
        local = datetime.fromisoformat(f"2026-{time}").replace(tzinfo=ZoneInfo("Europe/Berlin"))
        assert first_match(wanted, Visitor(time=local)) == (0 if time in matching else None), time
