"""Rules of links: the first one of which all conditions hold has the target.

`Conditions` declares each condition once: the values that it takes, the sentence that the documents
say of it, its noun in the console and in results of `try`, and what of the visitor it compares.
"""

from collections.abc import Iterator
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from marshmallow import ValidationError, fields

from linkmgr.core.database.statements import MAX_BIGINT, Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields.base import Target
from linkmgr.core.fields.bodies import New
from linkmgr.core.fields.links import MAX_NAME
from linkmgr.core.fields.member import JsonSchema, member, ref
from linkmgr.core.fields.unknown import warn_unknown
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.core.fields.zones import parse_zone
from linkmgr.visits import audience, conditions
from linkmgr.visits.conditions import WEEKDAYS, AnyOf, Between, Hours, Networks, Zone, known, local_time
from linkmgr.visits.targets import language_tag
from linkmgr.visits.visitor import Visitor

MAX_RULES = 20  # of a link
_TIME = {"type": "string", "examples": ["2026-12-24"]}
_HOUR = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$", "examples": ["09:00"]}
_COUNT = {"type": "integer", "minimum": 0, "maximum": MAX_BIGINT, "examples": [100]}


class Conditions(New):
    """The conditions of a rule. The label is the noun of a sentence."""

    country = member(
        AnyOf(lambda visitor, _: visitor.countries(), known(audience.country_problem)),
        "The country that the IP address belongs to: its English name or its code of two letters.",
        ["Germany", "AT"],
        label="country",
    )
    city = member(
        AnyOf(lambda visitor, _: visitor.cities()),
        "The city, as statistics name it. It is unknown if the service has no database of places.",
        ["Berlin"],
        label="city",
    )
    device = member(
        AnyOf(lambda visitor, _: visitor.devices(), known(audience.device_problem)),
        "The device: a model, a maker, a system, or `phone`, `tablet` or `desktop`.",
        ["phone"],
        label="device",
    )
    os = member(
        AnyOf(lambda visitor, _: visitor.systems(), known(audience.device_problem)),
        "The operating system, as statistics name it.",
        ["iOS", "Android"],
        label="system",
    )
    browser = member(
        AnyOf(lambda visitor, _: visitor.browsers()),
        "The browser, as statistics name it.",
        ["Firefox", "Firefox Mobile"],
        label="browser",
    )
    language = member(
        AnyOf(
            lambda visitor, _: visitor.preferred_languages(),
            known(audience.language_problem),
            language_tag,
        ),
        "A language that the browser prefers: its code or its English name.",
        ["fr", "Portuguese (Brazil)"],
        label="language",
    )
    query = member(
        AnyOf(lambda visitor, _: visitor.parameters()),
        "A parameter in the query of the short URL: `name=value`, or `name` with any value.",
        ["ref=partner", "debug"],
        label="query parameter",
    )
    referrer = member(
        AnyOf(lambda visitor, _: visitor.referrers(), conditions.host),
        "The host of the page that the visitor comes from. It includes its subdomains.",
        ["news.example.com"],
        label="referrer",
    )
    dates = member(
        Between(
            lambda visitor, zone: local_time(visitor, zone).isoformat(" ", "seconds")[:19],
            conditions.date,
            "times such as 2030-12-31 or 2030-12-31 18:00, without an offset",
            _TIME,
        ),
        "The time of the visit, with both ends. A date alone is the beginning of that day, or its end "
        "as the second one.",
        {"from": "2026-12-01", "until": "2026-12-24"},
        label="date",
    )
    weekdays = member(
        AnyOf(lambda visitor, zone: [WEEKDAYS[local_time(visitor, zone).weekday()]], conditions.weekday),
        f"The day of the week: {', '.join(f'`{day}`' for day in WEEKDAYS)}.",
        ["saturday", "sunday"],
        label="day of the week",
    )
    hours = member(
        Hours(
            lambda visitor, zone: f"{local_time(visitor, zone):%H:%M}",
            conditions.hour,
            "times of day such as 09:00",
            _HOUR,
        ),
        "The time of day, up to but without the second one. From 22:00 to 02:00 they continue after "
        "midnight, and belong to the day of `weekdays` on which they began.",
        {"from": "09:00", "until": "17:00"},
        label="time of day",
    )
    ip = member(
        Networks(lambda visitor, _: filter(None, [visitor.address]), conditions.network),
        "The IP address: IPv4 or IPv6 addresses or networks.",
        ["192.0.2.0/24", "2001:db8::/32"],
        label="IP address",
    )
    clicks = member(
        Between(lambda visitor, _: visitor.visits, conditions.count, "integers from 0", _COUNT, "to"),
        "The number of visits of the link so far, with both ends: 0 to 99 are the first 100. It "
        "may be some seconds late.",
        {"from": 0, "to": 99},
        label="number of visits",
    )
    timezone = member(
        Zone(),
        "The time zone of dates, weekdays and hours. Alone, it is no condition.",
        "Europe/Berlin",
        label="time zone",
        default="UTC",
    )


_CONDITIONS = Conditions()
CONDITIONS: dict[str, Any] = {name: field for name, field in _CONDITIONS.fields.items() if name != "timezone"}


def _zone(when: Row) -> ZoneInfo:
    try:
        return parse_zone(when.get("timezone", "UTC"))
    except AppError:  # the time zones of this machine are older
        return ZoneInfo("UTC")


def unmet(rule: Row, visitor: Visitor) -> Iterator[tuple[str, str]]:
    """Yield the conditions that do not hold, with a sentence each."""
    when = rule["when"]
    zone = _zone(when)
    for name, condition in CONDITIONS.items():
        is_night = name == "weekdays" and "hours" in when
        seen = CONDITIONS["hours"].evening(when["hours"], visitor, zone) if is_night else visitor
        if name in when and not condition.holds(when[name], seen, zone):
            noun, actual = condition.metadata["label"], condition.actual(seen, zone)
            yield name, f"The {noun} is {actual}, not {condition.as_text(when[name])}."


def first_match(rules: list[Row], visitor: Visitor) -> int | None:
    return next((number for number, rule in enumerate(rules) if not any(unmet(rule, visitor))), None)


# --- the member of a link


class When(fields.Field[Row]):
    nested = (Conditions,)
    json: ClassVar[JsonSchema] = ref(Conditions)
    default_error_messages = {"required": "is required"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Row:
        if not isinstance(value, dict):
            raise ValidationError("must be an object of conditions")
        named = ", ".join(CONDITIONS)
        for name in value.keys() - _CONDITIONS.fields.keys():
            raise ValidationError({name[:MAX_NAME]: [f"must be a condition: {named}"]})
        loaded: Row = _CONDITIONS.load(value)
        if loaded.keys() <= {"timezone"}:
            raise ValidationError(f"must have a condition: {named}")
        return loaded


class Rule(New):
    when = member(When(required=True), "All of these conditions must hold.", {"country": ["Germany", "AT"]})
    url = member(Target(MAX_URL, required=True), "The target.", "https://example.com/de")


_RULE = Rule()


class Rules(fields.Field[list[Row]]):
    nested = (Rule,)
    json: ClassVar[JsonSchema] = {"type": "array", "items": ref(Rule), "maxItems": MAX_RULES}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Row]:
        if not (isinstance(value, list) and all(isinstance(rule, dict) for rule in value)):
            raise ValidationError("must be an array of objects with when and url")
        if len(value) > MAX_RULES:
            raise ValidationError(f"must have at most {MAX_RULES} rules")
        for rule in value:
            warn_unknown(Rule, _RULE.fields, rule, f"{attr}.")
        try:
            return list(_RULE.load(value, many=True))
        except ValidationError as error:
            raise ValidationError([*_places(error.messages)][:MAX_RULES]) from None


def _places(problems: Any, place: str = "") -> Iterator[str]:
    """Yield each problem behind its place, such as `[2].when.country`."""
    if isinstance(problems, list):
        yield from (f"{place} {problem}" for problem in problems)
        return
    for name, inner in problems.items():
        yield from _places(inner, f"[{name}]" if isinstance(name, int) else f"{place}.{name}")
