"""Tries of a link: where a described visitor would get, and why. Nothing is counted."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from marshmallow import ValidationError

from linkmgr.core.database.statements import MAX_BIGINT, Row
from linkmgr.core.errors import existing
from linkmgr.core.fields import shapes
from linkmgr.core.fields.base import Integer, IpAddress, Text
from linkmgr.core.fields.bodies import New
from linkmgr.core.fields.links import Start
from linkmgr.core.fields.member import member
from linkmgr.core.fields.short_urls import parse_short_url
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.repository import links, public
from linkmgr.visits import audience, conditions, rules
from linkmgr.visits.blocked import blocked
from linkmgr.visits.choice import app_store, choose, completed
from linkmgr.visits.conditions import known
from linkmgr.visits.counting import MAX_AGENT, MAX_HEADER
from linkmgr.visits.dimensions import UNKNOWN
from linkmgr.visits.targets import KEPT
from linkmgr.visits.visitor import Visitor

_STATES = {
    "scheduled": "The link is not active yet.",
    "expired": "The link has expired.",
    "used": "The link has had all of its clicks.",
    "blocked": "An administrator has blocked the link, or the host of its target.",
}
_LABEL = 100  # characters
_YEARS = 1970, 9998  # of times that exist in every time zone
_UNMET = shapes.object_of(
    rule=shapes.number(1, 1), condition="country", message="The country is France, not Germany."
)
TRIED = shapes.object_of(
    state=shapes.choice("active", *_STATES) | {"description": "Of the link at the time of the visit."},
    url=shapes.or_null(shapes.url("https://example.com/sale"))
    | {
        "description": "The target with all that is added to it, `expiredurl`, or null for a page "
        "of this service."
    },
    rule=shapes.or_null(shapes.number(2, 1))
    | {"description": "The number of the rule that matches, from 1, or null."},
    variant=shapes.or_null("Blue button") | {"description": "The name of the variant, or null."},
    message="Rule 2 matches.",
    unmet=shapes.array_of(_UNMET)
    | {
        "description": "The conditions that do not hold, of the rules before the one that matches, or of all."
    },
)


class _Parsed(Text):
    def __init__(self, parse: Callable[[str], str], maximum: int = _LABEL) -> None:
        super().__init__(maximum)
        self._parse = parse

    def clean(self, text: str) -> str:
        return self._parse(super().clean(text))


class _Time(Start):
    def clean(self, text: str) -> Any:
        time = datetime.fromisoformat(super().clean(text))
        if not _YEARS[0] <= time.year <= _YEARS[1]:
            raise ValidationError("must be between the years {} and {}".format(*_YEARS))
        return time


class DescribedVisitor(New):
    ip = member(IpAddress(), "The IP address.", "192.0.2.7", label="IP address")
    country = member(
        _Parsed(known(audience.country_problem)),
        "The country, in place of that of `ip`.",
        "Germany",
        label="Country",
    )
    city = member(Text(_LABEL), "The city, in place of that of `ip`.", "Berlin", label="City")
    agent = member(
        Text(MAX_HEADER),
        "The header `User-Agent`.",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0)",
        label="User agent",
    )
    device = member(
        _Parsed(known(audience.device_problem)),
        "The device, in place of that of `agent`.",
        "iphone",
        label="Device",
    )
    os = member(
        _Parsed(known(audience.device_problem)),
        "The system, in place of that of `agent`.",
        "iOS",
        label="System",
    )
    browser = member(Text(_LABEL), "The browser, in place of that of `agent`.", "Firefox", label="Browser")
    language = member(
        Text(MAX_HEADER), "The header `Accept-Language`.", "fr-CH, fr;q=0.9, en;q=0.8", label="Language"
    )
    referrer = member(
        _Parsed(conditions.host, MAX_URL),
        "The URL or host of the page before.",
        "https://news.example.com/",
        label="Referrer",
    )
    query = member(Text(MAX_URL), "The query of the short URL.", "ref=partner", label="Query")
    time = member(
        _Time(),
        "The time of the visit. Without it, it is now.",
        "2026-12-24 18:00:00",
        label="Time",
    )
    clicks = member(
        Integer(0, MAX_BIGINT),
        "The number of visits before this one. Without it, it is that of the link.",
        100,
        label="Visits before",
    )


def try_link(user_id: int, link_id: int, described: Row) -> Row:
    """Return what a visitor would get, as a redirect decides, and what does not hold of the rules
    before."""
    record = links.read(user_id, link_id)
    short = parse_short_url(record["shorturl"])
    link = existing(short and public.short_link(short.host, short.alias), "link")
    clicks = described.get("clicks")
    visitor = Visitor(
        described.get("ip", ""),
        described.get("agent", "")[:MAX_AGENT],
        described.get("language", ""),
        f"//{described.get('referrer', '')}",
        quote(described.get("query", "").removeprefix("?"), safe=KEPT),
        described.get("time") or datetime.now(UTC),
        partial(public.clicks, link["id"]) if clicks is None else lambda: clicks,
        **{
            name: described[name]
            for name in ("country", "city", "device", "os", "browser")
            if name in described
        },
    )
    if state := _state(record, link, visitor.time, clicks):
        return _stopped(state, link["expiredurl"])
    choice = choose(link, visitor)
    store = app_store(link, f"{visitor.device} {visitor.os}".strip() or visitor.agent)
    if blocked().has_host(store or "") or blocked().has_host(choice.url):
        return _stopped("blocked")
    ruled = "No rule matches." if choice.rule is None else f"Rule {choice.rule + 1} matches."
    return {
        "state": "active",
        "url": store or completed(link, choice.url, visitor.query),
        "rule": None if choice.rule is None else choice.rule + 1,
        "variant": None if choice.variant == UNKNOWN else choice.variant,
        "message": ruled if link["rules"] else "The link has no rules.",
        "unmet": [
            {"rule": number, "condition": name, "message": sentence}
            for number, rule in enumerate((link["rules"] or [])[: choice.rule], 1)
            for name, sentence in rules.unmet(rule, visitor)
        ],
    }


def _stopped(state: str, target: str = "") -> Row:
    if blocked().has_host(target):
        return _stopped("blocked")
    url = None if state == "blocked" else target or None
    return {"state": state, "url": url, "message": _STATES[state], "rule": None, "variant": None, "unmet": []}


def _state(record: Row, link: Row, time: datetime, clicks: int | None) -> str | None:
    """Return the state at the time of the visit, or None if the link is active."""
    if link["state"] == "blocked":
        return "blocked"
    moment = f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    if record["starts"] and record["starts"] > moment:
        return "scheduled"
    if record["expiry"] and record["expiry"] <= moment:
        return "expired"
    is_used = (
        link["state"] == "used" if clicks is None else record["maxclicks"] and clicks >= record["maxclicks"]
    )
    return "used" if is_used else None
