"""The `limits` object of a plan (specification, section 2, Plan)."""

from typing import Any

from marshmallow import RAISE, Schema, fields

from linkmgr.fields.base import Choice, Integer, Matching, Text

COUNTED = ("team", "splash", "overlay", "pixels", "domain")
SWITCHED = ("custom", "multiple", "alias", "device", "geo", "bundle", "parameters", "export", "api")
NUMBERS = ("links", "clicks", "retention")

# The default of `plans add`: every feature, and no limits.
UNLIMITED: dict[str, Any] = (
    dict.fromkeys(NUMBERS, 0)
    | {name: {"enabled": "1", "count": "0"} for name in COUNTED}
    | {name: {"enabled": "1"} for name in SWITCHED}
)


class _Limits(Schema):
    error_messages = {"unknown": "is not a limit", "type": "must be an object"}

    class Meta:
        unknown = RAISE


class _Switched(_Limits):
    enabled = Choice(("0", "1"), required=True)


class _Counted(_Switched):
    count = Matching("[0-9]{1,9}", 'a string of 1 to 9 digits, "0" for no limit', required=True)


_NOT_NULL: dict[str, Any] = {"null": "must not be null"}
_MEMBERS: dict[str, fields.Field[Any]] = {
    **{name: Integer(0, 2**31 - 1) for name in NUMBERS},
    **{name: fields.Nested(_Counted, error_messages=_NOT_NULL) for name in COUNTED},
    **{name: fields.Nested(_Switched, error_messages=_NOT_NULL) for name in SWITCHED},
}

PlanLimits = _Limits.from_dict(_MEMBERS, name="PlanLimits")


class PlanName(Schema):
    name = Text(50, required=True)


MAX_RATE = 1_000_000
PRICE = r"[0-9]{1,9}(\.[0-9]{1,2})?"
_PRICE = {"pattern": PRICE, "description": "a price such as 5 or 49.99"}


class PlanNumbers(Schema):
    """Prices, and requests per minute, as text."""

    monthly = Matching(**_PRICE)
    yearly = Matching(**_PRICE)
    lifetime = Matching(**_PRICE)
    rate = Matching(f"[0-9]{{1,6}}|{MAX_RATE}", "a number of requests, or 0 for the default")
