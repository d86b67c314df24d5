"""/api/plans and /api/plan"""

from typing import Any

from linkmgr.fields.base import Boolean, Choice, Expiration, Matching, Shown, Text
from linkmgr.fields.bodies import New
from linkmgr.fields.member import JsonSchema, member
from linkmgr.fields.plan_limits import LIMITS, PlanLimits
from linkmgr.resources.resource import Resource, row_id

PRICES = ("monthly", "yearly", "lifetime")
PRICE = r"[0-9]{1,9}(\.[0-9]{1,2})?"
MAX_RATE = 1_000_000


def _price(label: str) -> Matching:
    field = Matching(PRICE, "a price such as 5 or 49.99", allow_empty=True, load_only=True)
    return member(field, "", "9", label=label)


def _object(members: dict[str, JsonSchema]) -> JsonSchema:
    return {"type": "object", "properties": members, "required": list(members)}


def _limit(field: Any) -> JsonSchema:
    json: JsonSchema = field.json
    return json | {name: field.metadata[name] for name in ("description", "examples")}


class Plan(Resource, PlanLimits):  # type: ignore[misc]
    """A plan. Its forms have the limits as single members, and records have them in `limits`."""

    about = """\
For administrators. Plans limit growth: adding a row beyond a count is a 400, and using a feature that is not `enabled`
is a 403. Existing rows can still be read, changed and deleted. A limit of `0` and a count of `"0"` mean unlimited.
Administrators have no limits, except that `retention` also applies to them. Their requests per minute are those of the
setting `LINKMGR_RATE_LIMIT`, also on a plan with its own."""
    noun = path = "plan"
    plural = "plans"

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
        Matching(
            f"[0-9]{{1,6}}|{MAX_RATE}", "a number of requests, or 0 for the default", allow_empty=True, load_only=True
        ),
        "",
        "60",
        label="API requests per minute",
    )
    prices = member(
        Shown(_object({name: {"type": "number"} for name in PRICES}) | {"type": ["object", "null"]}),
        "",
        dict.fromkeys(PRICES, 9),
    )
    limits = member(
        Shown(_object({name: _limit(field) for name, field in LIMITS.items()})),
        "",
        {name: field.metadata["examples"][0] for name, field in LIMITS.items()},
    )


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
