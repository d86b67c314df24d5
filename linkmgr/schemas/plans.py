from typing import Any, ClassVar

from marshmallow import RAISE, Schema, fields, post_load

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import Boolean, Choice, Expiration, Integer, Matching, Shown, Text
from linkmgr.core.fields.bodies import Body, New
from linkmgr.core.fields.member import JsonSchema, member
from linkmgr.core.fields.resource import Resource, row_id
from linkmgr.repository import plans

_COUNT = "[0-9]{1,9}"
_MAX_PRICE = 999_999_999.99
_PRICE: JsonSchema = {"type": "number", "minimum": 0, "maximum": _MAX_PRICE}


class _Limits(Schema):
    error_messages = {"unknown": "is not a limit", "type": "must be an object"}

    class Meta:
        unknown = RAISE


class _Switched(_Limits):
    enabled = Choice(("0", "1"), required=True)


class _Counted(_Switched):
    count = Matching(_COUNT, 'a string of 1 to 9 digits, "0" for no limit', required=True)


class Feature(fields.Nested):
    """A feature that a plan includes or not, and the number of its rows if they are counted."""

    def __init__(self, *, has_count: bool) -> None:
        super().__init__(_Counted if has_count else _Switched, error_messages={"null": "must not be null"})
        self.has_count = has_count
        members: JsonSchema = {"enabled": {"type": "string", "pattern": "^[01]$"}}
        members |= {"count": {"type": "string", "pattern": f"^{_COUNT}$"}} if has_count else {}
        name = "CountedFeature" if has_count else "Feature"
        self.json = {"type": "object", "title": name, "properties": members, "required": list(members)}


def _number(about: str, label: str) -> Integer:
    return member(Integer(0, 2**31 - 1), about, 0, label=label, shown="", default=0)


def _counted(about: str, label: str = "") -> Feature:
    example = {"enabled": "1", "count": "50"}
    return member(
        Feature(has_count=True), about, example, label=label, shown="", default=example | {"count": "0"}
    )


def _switched(about: str, label: str = "") -> Feature:
    return member(
        Feature(has_count=False), about, {"enabled": "1"}, label=label, shown="", default={"enabled": "1"}
    )


class PlanLimits(_Limits):
    """The limits of a plan (specification, section 2, Plan). Those without a label are not used by
    this service."""

    links = _number("Links.", "Links")
    clicks = _number(
        "Visits in a calendar month, over all links and QR codes. Further visits work, but are not counted.",
        "Clicks per month",
    )
    retention = _number("Days that visits are kept. Totals remain.", "Retention in days")
    team = _counted("Users who work in the account of another user, and invitations.", "Members")
    splash = _counted("Splash pages.", "Splash pages")
    overlay = _counted("CTA overlays.", "Overlays")
    pixels = _counted("Pixels.", "Pixels")
    domain = _counted("Branded domains.", "Branded domains")
    custom = _switched("Not used by this service.")
    multiple = _switched("Not used by this service.")
    alias = _switched("Custom aliases of links and bio pages.", "Custom aliases")
    device = _switched("Targets by device.", "Targets by device")
    geo = _switched("Targets by country.", "Targets by country")
    bundle = _switched("Campaigns.", "Campaigns")
    parameters = _switched("Link parameters.", "Link parameters")
    export = _switched("Exports.", "Exports")
    api = _switched("The API. Without it, the response to every request is a 403.", "API")


LIMITS: dict[str, fields.Field[Any]] = PlanLimits().fields
_FEATURES = {name: field for name, field in LIMITS.items() if isinstance(field, Feature)}
NUMBERS = tuple(name for name in LIMITS if name not in _FEATURES)
COUNTED = tuple(name for name, field in _FEATURES.items() if field.has_count)
SWITCHED = tuple(name for name, field in _FEATURES.items() if not field.has_count)

# Those of a new plan that was sent none: every feature, and no limits.
UNLIMITED: dict[str, Any] = {name: field.metadata["default"] for name, field in LIMITS.items()}
PRICES = ("monthly", "yearly", "lifetime")


def _price(label: str) -> Matching:
    field = Matching(
        r"[0-9]{1,9}(\.[0-9]{1,2})?", "a price such as 5 or 49.99", allow_empty=True, load_only=True
    )
    return member(field, "", "9", label=label)


class _Rate(Matching):
    """A number of requests in a form. Records have an integer."""

    json_shown: ClassVar[JsonSchema] = {"type": "integer", "minimum": 0}


def _object(name: str, members: dict[str, JsonSchema]) -> JsonSchema:
    """Return the schema of an object of a record, which updates may send in part."""
    return {"type": "object", "title": name, "properties": members}


def _limit(field: Any) -> JsonSchema:
    json: JsonSchema = field.json
    return json | {name: field.metadata[name] for name in ("description", "examples")}


class Plan(Resource, PlanLimits):
    """A plan. Its forms have the limits as single members, and records have them in `limits`."""

    id = row_id()
    name = member(Text(50, required=True), "", "Pro", label="Name")
    free = member(
        Boolean(load_default=False),
        "Users without another plan have the first free plan.",
        False,
        label="A free plan, without prices and without an end",
    )
    monthly = _price("Price per month")
    yearly = _price("Price per year")
    lifetime = _price("Lifetime price")
    rate = member(
        _Rate("[0-9]{1,6}|1000000", "a number of requests, or 0 for the default", allow_empty=True),
        "",
        60,
        label="API requests per minute",
    )
    prices = member(
        Shown(_object("PlanPrices", dict.fromkeys(PRICES, _PRICE)) | {"type": ["object", "null"]}),
        "",
        dict.fromkeys(PRICES, 9),
    )
    limits = member(
        Shown(_object("PlanLimits", {name: _limit(field) for name, field in LIMITS.items()})),
        "",
        {name: field.metadata["examples"][0] for name, field in LIMITS.items()},
    )


def create_plan(members: Row) -> Row:
    columns = _to_columns(members)
    limits = UNLIMITED | columns.pop("limits")
    return {"id": plans.add(members["name"], free=members["free"], limits=limits, **columns)}


def change_plan(plan_id: int, members: Row) -> None:
    plans.edit(plan_id, name=members["name"], **_to_columns(members))


def price_problem(members: Row) -> str:
    has_price = any(str(members.get(name) or "").strip("0.") for name in PRICES)
    return "A free plan has no prices." if members["free"] and has_price else ""


def _to_columns(members: Row) -> Row:
    numbers = {name: float(members[name] or 0) for name in (*PRICES, "rate") if members[name] is not None}
    return numbers | {"limits": {name: members[name] for name in LIMITS if members[name] is not None}}


class _Price(fields.Field[float]):
    default_error_messages = {"invalid": f"must be a number from 0 to {_MAX_PRICE}"}
    json: ClassVar[JsonSchema] = _PRICE

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        if not (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MAX_PRICE):
            raise self.make_error("invalid")
        return round(value, 2)


class PlanPrices(_Limits):
    error_messages = {"unknown": "is not a price", "type": "must be an object"}

    monthly, yearly, lifetime = _Price(), _Price(), _Price()


class Members(fields.Field[Row]):
    """An object with some of the members that a schema declares."""

    def __init__(self, schema: type[Schema]) -> None:
        super().__init__()
        self._schema = schema()
        members: dict[str, Any] = self._schema.fields
        self.json = _object(schema.__name__, {name: members[name].json for name in members})

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Row:
        loaded: Row = self._schema.load(value)
        return loaded


class _PlanBody(Body):
    prices = member(
        Members(PlanPrices),
        "Those that are missing keep their values, which are 0 at first.",
        {"monthly": 9},
        removed=dict.fromkeys(PRICES, 0),
    )
    rate = member(
        Integer(0, 1_000_000),
        "API requests per minute. `0` means those of the setting `LINKMGR_RATE_LIMIT`.",
        60,
    )
    limits = member(
        Members(PlanLimits),
        "Those that are missing stay as they are. A new plan has every feature, and no limits.",
        {"links": 1000, "pixels": {"enabled": "1", "count": "50"}},
    )

    @post_load
    def complete(self, loaded: Row, **_: Any) -> Row:
        """Return the members of the forms, which have no objects."""
        unsent: Row = dict.fromkeys(("name", *PRICES, "rate", *LIMITS))
        return {**unsent, **loaded.pop("prices", {}), **loaded.pop("limits", {}), **loaded}


class PlanCreate(_PlanBody):
    name = member(Text(50, required=True), "Unique.", "Team")
    free = member(
        Boolean(load_default=False), "A free plan has no prices. It cannot be changed to another.", False
    )


class PlanUpdate(_PlanBody):
    is_update = True
    readable: ClassVar = {"id": True, "free": True}

    name = member(Text(50), "Unique.", "Crew")


class Subscription(New):
    type = member(
        Choice(PRICES, required=True),
        "The period: a calendar month, a calendar year, or without an end.",
        "yearly",
    )
    expiration = member(
        Expiration(),
        "The end of the plan, whatever the type. A time in the past ends the plan. Free plans have no end.",
        "2030-12-31 23:59:59",
    )
