"""A model of the decision of a redirect: for random links and visitors, it agrees with the service and with `try`.

`expected` is written without the code of the service. Each stage is a function that answers or returns None, so that
another stage is a line in STAGES, and its members one in `any_links`.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.geoip import CHILE, LIMA, PERU
from tests.support.shortlinks import ANDROID, Short
from tests.support.targets import FIREFOX, IPHONE

pytestmark = pytest.mark.slow

Link = dict[str, Any]
Visitor = dict[str, Any]
TARGET = "https://example.com/"
# Properties of visitors by address and header, which the service finds out.
PLACES = {PERU: ("peru", ""), CHILE: ("chile", ""), LIMA: ("peru", "lima"), "2001:db8::7": ("", "")}
AGENTS = {IPHONE: ("phone", "ios", "mobile safari"), ANDROID: ("phone", "android", "chrome mobile"),
          FIREFOX: ("desktop", "windows", "firefox"), "": ("", "", "")}  # fmt: skip
LANGUAGES = {"fr-CH, fr;q=0.9, en;q=0.8": {"french"}, "en;q=0.5, de;q=0.45": {"english", "german"}, "": set()}
CODES = {"pe": "peru", "cl": "chile", "fr": "french", "de": "german", "en": "english"}
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def texts(*values: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True)


def ends(last: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"from": values, last: values}) | st.fixed_dictionaries({last: values})


times = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC))
hours = st.times().map("{:%H:%M}".format)
CONDITIONS: dict[str, st.SearchStrategy[Any]] = {
    "country": texts("Peru", "CL", "Germany"),
    "city": texts("Lima", "Berlin"),
    "device": texts("phone", "desktop"),
    "os": texts("iOS", "windows", "Android"),
    "browser": texts("Firefox", "Mobile Safari"),
    "language": texts("fr", "German", "English"),
    "query": texts("ref", "ref=a", "ref=B", "debug"),
    "referrer": texts("example.com", "news.example.com", "t.co"),
    "dates": ends("until", times.map("{:%Y-%m-%d %H:%M:%S}".format)),
    "weekdays": texts(*DAYS),
    "hours": ends("until", hours),
    "ip": texts("203.0.113.0/24", "198.51.100.9", "2001:db8::/32", "0.0.0.0/0"),
    "clicks": ends("to", st.integers(0, 4)),
}  # fmt: skip
names = st.lists(st.sampled_from([*CONDITIONS]), min_size=1, max_size=2, unique=True)
whens = names.flatmap(lambda chosen: st.fixed_dictionaries({name: CONDITIONS[name] for name in chosen}))
zones = st.sampled_from(["UTC", "Asia/Tokyo", "America/New_York"])
conditions = st.builds(lambda when, zone: when | {"timezone": zone}, whens, zones)
any_links: st.SearchStrategy[Link] = st.fixed_dictionaries({
    "rules": st.lists(conditions, max_size=6).map(
        lambda sent: [{"when": when, "url": f"{TARGET}rule{n}"} for n, when in enumerate(sent)]),
    "devicetarget": st.sampled_from([{}, {"phone": f"{TARGET}phone"}]),
    "geotarget": st.sampled_from([{}, {"peru": f"{TARGET}peru"}]),
    "languagetarget": st.sampled_from([{}, {"german": f"{TARGET}german"}]),
    "variants": st.sampled_from([[], [{"name": name, "url": f"{TARGET}{name}", "weight": 1} for name in "AB"]]),
    "starts": st.none() | times,
    "expiry": st.none() | times,
    "maxclicks": st.none() | st.integers(1, 5),
    "expiredurl": st.just(f"{TARGET}ended"),
})  # fmt: skip
links = any_links.filter(lambda link: not (link["starts"] and link["expiry"]) or link["starts"] < link["expiry"])
described = st.fixed_dictionaries({
    "ip": st.sampled_from([*PLACES]),
    "agent": st.sampled_from([*AGENTS]),
    "language": st.sampled_from([*LANGUAGES]),
    "referrer": st.sampled_from(["", "https://example.com/a", "https://a.news.example.com", "https://t.co.example"]),
    "query": st.sampled_from(["", "ref=a", "ref=b&debug", "x=ref", "REF"]),
    "time": times,
    "clicks": st.integers(0, 5),
})  # fmt: skip

# --- the model


def names_of(visitor: Visitor, day: str) -> dict[str, set[str]]:
    """Return what the values of each condition are compared with."""
    place, client, query = PLACES[visitor["ip"]], AGENTS[visitor["agent"]], visitor["query"].lower().split("&")
    labels = visitor["referrer"].partition("//")[2].partition("/")[0].split(".")
    return {
        **{name: {label} for name, label in zip(("country", "city"), place, strict=True)},
        **{name: {label} for name, label in zip(("device", "os", "browser"), client, strict=True)},
        "language": LANGUAGES[visitor["language"]],
        "query": {*query, *(part.partition("=")[0] for part in query)},
        "referrer": {".".join(labels[n:]) for n in range(len(labels))},
        "weekdays": {day},
    }


def day_of(local: datetime, night: dict[str, str]) -> str:
    """Return the day on which a night began, or that of a time before or after it."""
    began = night.get("from", "00:00")
    is_morning = f"{local:%H:%M}" < night.get("until", "") <= began
    return DAYS[(local - timedelta(days=is_morning)).weekday()]


def holds(name: str, when: dict[str, Any], visitor: Visitor, zone: str) -> bool:
    wanted, local = when[name], visitor["time"].astimezone(ZoneInfo(zone))
    if name == "ip":
        return any(ip_address(visitor["ip"]) in ip_network(value) for value in wanted)
    if isinstance(wanted, list):
        values = {CODES.get(text.lower(), text.lower()) for text in wanted}
        return bool(names_of(visitor, day_of(local, when.get("hours", {})))[name] & values)
    actual = {"hours": f"{local:%H:%M}", "dates": f"{local:%Y-%m-%d %H:%M:%S}", "clicks": visitor["clicks"]}[name]
    last = wanted["to" if name == "clicks" else "until"]
    if name == "hours":
        begin = wanted.get("from", "00:00")
        return bool(begin <= actual < last if begin < last else actual >= begin or actual < last)
    return bool(wanted.get("from", actual) <= actual <= last)


def of_rule(link: Link, visitor: Visitor) -> str | None:
    for rule in link["rules"]:
        wanted = {**rule["when"]}
        zone = wanted.pop("timezone")
        if all(holds(name, wanted, visitor, zone) for name in wanted):
            return str(rule["url"])
    return None


def of_state(link: Link, visitor: Visitor) -> str | None:
    is_early = link["starts"] and visitor["time"] < link["starts"]
    is_late = link["expiry"] and visitor["time"] >= link["expiry"]
    is_used = link["maxclicks"] and visitor["clicks"] >= link["maxclicks"]
    return link["expiredurl"] if is_early or is_late or is_used else None


STAGES: list[Callable[[Link, Visitor], str | None]] = [
    of_state,
    of_rule,
    lambda link, visitor: link["devicetarget"].get(AGENTS[visitor["agent"]][0]),
    lambda link, visitor: link["geotarget"].get(PLACES[visitor["ip"]][0]),
    lambda link, visitor: link["languagetarget"].get("german") if "german" in LANGUAGES[visitor["language"]] else None,
]


def expected(link: Link, visitor: Visitor) -> set[str]:
    """Return the target. A digest chooses one of the variants."""
    decided = (target for stage in STAGES if (target := stage(link, visitor)))
    first = next(decided, None)
    return {first} if first else {variant["url"] for variant in link["variants"]} or {TARGET}


# --- the service


def set_clicks(sql: Sql, link: int, clicks: int) -> None:
    sql(
        """
        WITH taken AS (DELETE FROM taken_clicks WHERE link_id = %(id)s)
        INSERT INTO totals VALUES (%(id)s, %(clicks)s, 0)
        ON CONFLICT (tracked_id) DO UPDATE SET clicks = %(clicks)s RETURNING 1
        """,
        id=link,
        clicks=clicks,
    )


@settings(max_examples=100)
@given(link=links, visitors=st.lists(described, min_size=1, max_size=6))
def test_the_redirect_and_try_decide_as_the_model_does(
    *, located: Flask, sql: Sql, alice: Client, link: Link, visitors: list[Visitor]
) -> None:
    client = Client(located.test_client(), alice.key, alice.id)
    short = Short(located, sql, alice.id, url=TARGET, **link)
    for visitor in visitors:
        set_clicks(sql, short.id, visitor["clicks"])
        headers = {"Accept_Language": visitor["language"], "Referer": visitor["referrer"]}
        before = expected(link, visitor | {"time": datetime.now(UTC)})
        target = short.redirect_target(
            path=f"?{visitor['query']}", agent=visitor["agent"], address=visitor["ip"], **headers
        )
        assert target in before | expected(link, visitor | {"time": datetime.now(UTC)})
        set_clicks(sql, short.id, visitor["clicks"])
        sent = visitor | {"time": f"{visitor['time']:%Y-%m-%d %H:%M:%S}"}
        answer = client.post(f"/api/url/{short.id}/try", sent).get_json()["data"]
        url, rule, variant = answer["url"], answer["rule"], answer["variant"]
        assert url in expected(link, visitor)
        assert rule == next((n for n, rule in enumerate(link["rules"], 1) if rule["url"] == url), None)
        assert variant == next((row["name"] for row in link["variants"] if row["url"] == url), None)
        before_it = range(1, rule or len(link["rules"]) + 1) if answer["state"] == "active" else ()
        assert {row["rule"] for row in answer["unmet"]} == {*before_it}
