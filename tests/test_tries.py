"""POST /api/url/{id}/try: where a described visitor would get, and why."""

import re
from html import unescape
from typing import Any

import pytest
from flask.testing import FlaskClient

from linkmgr.schemas.tries import DescribedVisitor
from tests.conftest import Client
from tests.support.pages import message, seen
from tests.support.shortlinks import PAGE, Make
from tests.support.targets import FIREFOX, IPHONE

RULES: list[dict[str, Any]] = [
    {"when": {"country": ["Germany", "AT"], "os": ["iOS"]}, "url": f"{PAGE}/1"},
    {"when": {"hours": {"from": "22:00", "until": "06:00"}, "timezone": "Asia/Tokyo"}, "url": f"{PAGE}/2"},
    {"when": {"clicks": {"from": 100}}, "url": f"{PAGE}/3"},
    {"when": {"query": ["ref=partner"], "language": ["French"]}, "url": f"{PAGE}/4"},
]
NOON = {"time": "2026-11-27 03:00"}  # in Tokyo


def tried(client: Client, link_id: int, **described: Any) -> dict[str, Any]:
    answer = client.post(f"/api/url/{link_id}/try", described)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.get_json()["data"]
    return data


def test_the_rule_that_matches_is_named_and_why_those_before_do_not(short: Make, alice: Client) -> None:
    link = short(rules=RULES, parameters=[["a", "1"]], forwardquery=True)
    assert tried(alice, link.id, country="AT", os="ios", **NOON) | {"message": ""} == {
        "state": "active", "url": f"{PAGE}/1?a=1", "rule": 1, "variant": None, "message": "", "unmet": [],
    }  # fmt: skip
    last = tried(alice, link.id, country="PE", agent=IPHONE, query="?ref=partner", language="fr-CH, de;q=0.5", **NOON)
    assert (last["rule"], last["url"], last["message"]) == (4, f"{PAGE}/4?a=1&ref=partner", "Rule 4 matches.")
    assert [(row["rule"], row["condition"], row["message"]) for row in last["unmet"]] == [
        (1, "country", "The country is Peru, not Germany, AT."),
        (2, "hours", "The time of day is 12:00, not 22:00 to 06:00."),
        (3, "clicks", "The number of visits is 0, not from 100."),
    ]
    assert tried(alice, link.id, clicks=100, **NOON)["rule"] == 3
    assert tried(alice, link.id, time="2026-11-27 14:00")["rule"] == 2
    none = tried(alice, link.id, **NOON)
    assert (none["rule"], none["url"], none["message"]) == (None, f"{PAGE}?a=1", "No rule matches.")
    assert {row["message"] for row in none["unmet"]} >= {
        "The country is unknown, not Germany, AT.", "The system is unknown, not iOS."
    }  # fmt: skip
    assert link.clicks == 0
    link = short(rules=[{"when": {"device": ["phone"]}, "url": PAGE}])
    for agent, device in (("", "unknown"), ("curl/8", "unknown"), ("(X11; Linux x86_64)", "linux desktop")):
        [unmet] = tried(alice, link.id, agent=agent)["unmet"]
        assert unmet["message"] == f"The device is {device}, not phone."


def test_a_link_that_is_not_active_and_one_with_variants_say_so(short: Make, alice: Client) -> None:
    ended = f"{PAGE}/ended"
    link = short(rules=RULES, starts="2027-01-01", expiry="2027-02-01", maxclicks=5, expiredurl=ended)
    for described, state in (
        ({}, "scheduled"), ({"time": "2027-02-01"}, "expired"), ({"time": "2027-01-31 00:00", "clicks": 5}, "used"),
    ):  # fmt: skip
        answer = tried(alice, link.id, **described)
        assert (answer["state"], answer["url"], answer["rule"]) == (state, ended, None)
    assert tried(alice, link.id, time="2027-01-31 00:00", clicks=4)["state"] == "active"
    variants = [{"name": name, "url": f"{PAGE}/{name}", "weight": 1} for name in "AB"]
    link = short(variants=variants, devicetarget={"iphone": f"{PAGE}/phone"})
    answers = [tried(alice, link.id, ip=f"192.0.2.{n}") for n in range(9)]
    assert {answer["variant"] for answer in answers} == {"A", "B"}
    assert all(answer["url"] == f"{PAGE}/{answer['variant']}" for answer in answers)
    assert tried(alice, link.id, device="iPhone")["url"] == f"{PAGE}/phone"


def test_a_described_visitor_is_read_like_one_who_comes(short: Make, alice: Client) -> None:
    conditions = [{"ip": ["192.0.2.7", "fe80::/10"]}, {"referrer": ["www.xn--bcher-kva.example"]}]
    rules = [{"when": when, "url": f"{PAGE}/{number}"} for number, when in enumerate(conditions, 1)]
    link = short(rules=rules, forwardquery=True)
    for address in ("::ffff:192.0.2.7", "fe80::1%eth0"):
        assert tried(alice, link.id, ip=address)["rule"] == 1
    for page in ("https://www.bücher.example/ä", "www.bücher.example."):
        assert tried(alice, link.id, referrer=page, agent="x" * 8000)["rule"] == 2
    app = short(deeplink={"apple": f"{PAGE}/apple", "google": f"{PAGE}/google"})
    for described, store in (({"device": "iphone"}, "apple"), ({"os": "ios"}, "apple"), ({"os": "Android"}, "google")):
        assert tried(alice, app.id, agent=FIREFOX, **described)["url"] == f"{PAGE}/{store}"
    assert tried(alice, link.id, query="?a=→&b=%C3%A4+c")["url"] == f"{PAGE}?a=%E2%86%92&b=%C3%A4+c"


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ({"country": "Germny"}, "country has the value 'Germny', which is neither an English name nor an ISO code of a "
         "country, so it matches no visitor (did you mean 'germany'?)."),
        ({"ip": "192.0.2.0/24"}, "ip must be an IP address such as 192.0.2.7 or 2001:db8::7."),
        ({"referrer": "a b"}, "referrer has the value 'a b', which is not a host such as news.example.com."),
        ({"time": "now"}, "time must be a time such as 2030-12-31 23:59:59."),
        ({"clicks": -1}, "clicks must be an integer from 0 to 9223372036854775807."),
    ],
)  # fmt: skip
def test_an_impossible_visitor_is_refused(alice: Client, described: dict[str, Any], message: str) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE})
    answer = alice.post(f"/api/url/{link_id}/try", described)
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)


def test_the_console_tries_a_link_too(console: FlaskClient, alice: Client, bob: Client) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE, "rules": RULES})
    path = f"/console/links/{link_id}"
    page = console.get(path).text
    assert 'id="try"' in page
    assert "country: Germany, AT; system: iOS" in page
    answer = console.post(f"{path}/try", data={"country": "France", "time": NOON["time"], "clicks": "100"})
    assert answer.status_code == 200
    assert "Rule 3 matches." in answer.text
    assert "The country is France, not Germany, AT." in answer.text
    assert f"{PAGE}/3" in answer.text
    refused = console.post(f"{path}/try", data={"clicks": "many"})
    assert (refused.status_code, message(refused.text, "clicks")[:25]) == (400, "Visits before must be an ")
    foreign = bob.add("/api/url/add", {"url": PAGE})
    assert console.post(f"/console/links/{foreign}/try", data={}).status_code == 404


def test_the_latest_visits_say_where_they_led_and_can_be_tried(
    short: Make, alice: Client, console: FlaskClient
) -> None:
    variants = [{"name": name, "url": f"{PAGE}/{name}", "weight": 1} for name in ("Blue", "Red")]
    rules = [{"when": {"country": ["Peru"]}, "url": PAGE}, {"when": {"language": ["French"]}, "url": f"{PAGE}/fr"}]
    link = short(rules=rules, variants=variants)
    assert link.redirect_target(agent=IPHONE, Accept_Language="fr-CH, fr;q=0.9") == f"{PAGE}/fr"
    led_to = link.redirect_target(agent=FIREFOX)
    first, second = alice.get(f"/api/url/{link.id}/visits").get_json()["data"]["visits"]
    assert (first["rule"], second["rule"], second["variant"]) == ("Unknown", "2", "Unknown")
    rows = alice.get("/api/stats?by=rule").get_json()["data"]["rows"]
    assert {row["rule"]: row["clicks"] for row in rows} == {"2": 1, "Unknown": 1}

    page = console.get(f"/console/links/{link.id}").text
    latest = page.split("<h2>Latest visits</h2>")[1].split("</table>")[0]
    newest, oldest = (seen(row) for row in latest.split("<tr>")[2:])
    assert f"{led_to.removeprefix('https://')} {first['variant']} " in newest
    assert f"{PAGE.removeprefix('https://')}/fr 2 " in oldest
    path = unescape(re.findall('<a href="([^"]+)">Try', latest)[1])
    tried = console.get(path).text
    assert "Rule 2 matches." in seen(tried)
    assert ('value="fr"' in tried, 'value="phone"' in tried, 'value="Mobile Safari"' in tried) == (True, True, True)
    plain = short()
    plain.redirect_target(agent=FIREFOX)
    assert "Try the link as" not in seen(console.get(f"/console/links/{plain.id}").text)


def test_the_panel_begins_with_four_fields(short: Make, console: FlaskClient) -> None:
    panel = console.get(f"/console/links/{short().id}").text.split('id="try"')[1].split("</form>")[0]
    shown, others = panel.rsplit("<details>", 1)
    assert re.findall(' name="([a-z]+)"', shown) == ["country", "device", "language", "referrer"]
    assert len(re.findall(' name="([a-z]+)"', others)) == len(DescribedVisitor().fields) - 4
