"""The `limits` object of a plan (specification, section 2, Plan)."""

from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields

from linkmgr.fields.base import Choice, Matching, Text

COUNTED = ("team", "splash", "overlay", "pixels", "domain")
SWITCHED = ("custom", "multiple", "alias", "device", "geo", "bundle", "parameters", "export", "api")
NUMBERS = ("links", "clicks", "retention")

# Where "plans add" starts from: everything, without end.
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
    count = Matching("[0-9]{1,9}", 'a number in quotes, "0" for no limit', required=True)


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise ValidationError("must be a whole number, 0 for no limit")
    return value


_NOT_NULL: dict[str, Any] = {"null": "must not be null"}
_MEMBERS: dict[str, fields.Field[Any]] = {
    **{name: fields.Function(deserialize=_number, error_messages=_NOT_NULL) for name in NUMBERS},
    **{name: fields.Nested(_Counted, error_messages=_NOT_NULL) for name in COUNTED},
    **{name: fields.Nested(_Switched, error_messages=_NOT_NULL) for name in SWITCHED},
}

PlanLimits = _Limits.from_dict(_MEMBERS, name="PlanLimits")


class PlanName(Schema):
    name = Text(50, required=True)
