"""The limits of a plan (specification, section 2, Plan). Those without a label are not used by this service."""

from typing import Any

from marshmallow import RAISE, Schema, fields

from linkmgr.fields.base import Choice, Integer, Matching
from linkmgr.fields.member import JsonSchema, member

_COUNT = "[0-9]{1,9}"


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
        members: JsonSchema = {"enabled": {"type": "string", "enum": ["0", "1"]}}
        members |= {"count": {"type": "string", "pattern": f"^{_COUNT}$"}} if has_count else {}
        self.json = {"type": "object", "properties": members, "required": list(members)}


def _number(about: str, label: str) -> Integer:
    return member(Integer(0, 2**31 - 1), about, 0, label=label, shown="")


def _counted(about: str, label: str = "") -> Feature:
    return member(Feature(has_count=True), about, {"enabled": "1", "count": "50"}, label=label, shown="")


def _switched(about: str, label: str = "") -> Feature:
    return member(Feature(has_count=False), about, {"enabled": "1"}, label=label, shown="")


class PlanLimits(_Limits):
    links = _number("Links.", "Links")
    clicks = _number(
        "Visits in a calendar month, over all links and QR codes. Further visits work, but are not counted.",
        "Clicks per month",
    )
    retention = _number("Days that visits are kept. Totals remain.", "Retention in days")
    team = _counted("Not used by this service.")
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

# The default of `plans add`: every feature, and no limits.
UNLIMITED: dict[str, Any] = (
    dict.fromkeys(NUMBERS, 0)
    | {name: {"enabled": "1", "count": "0"} for name in COUNTED}
    | {name: {"enabled": "1"} for name in SWITCHED}
)
