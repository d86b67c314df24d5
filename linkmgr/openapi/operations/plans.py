"""/api/plans and /api/plan"""

from linkmgr.api import plans
from linkmgr.fields.plan_limits import COUNTED, NUMBERS, SWITCHED
from linkmgr.openapi.model import Access, Operation, Section
from linkmgr.openapi.schemas import ID, JsonSchema, all_of, choice, done, flag, number, record, text

_LIMITS = {
    "links": "Links.",
    "clicks": "Visits in a calendar month, over all links and QR codes. Further visits work, but are not counted.",
    "retention": "Days that visits are kept. Totals remain.",
    "team": "Not used by this service.",
    "splash": "Splash pages.",
    "overlay": "CTA overlays.",
    "pixels": "Pixels.",
    "domain": "Branded domains.",
    "custom": "Not used by this service.",
    "multiple": "Not used by this service.",
    "alias": "Custom aliases of links and bio pages.",
    "device": "Targets by device.",
    "geo": "Targets by country.",
    "bundle": "Campaigns.",
    "parameters": "Link parameters.",
    "export": "Exports.",
    "api": "The API. Without it, the response to every request is a 403.",
}


def _limit(name: str) -> JsonSchema:
    switch = choice("0", "1")
    if name in NUMBERS:
        schema = number(0)
    elif name in COUNTED:
        schema = record(enabled=switch, count=text("50", pattern="^[0-9]{1,9}$"))
    else:
        schema = record(enabled=switch)
    return schema | {"description": _LIMITS[name]}


_PRICES = ("monthly", "yearly", "lifetime")

SECTION = Section(
    name="Plans",
    description="""\
For administrators. Plans limit growth: adding a row beyond a count is a 400, and using a feature that is not `enabled`
is a 403. Existing rows can still be read, changed and deleted. A limit of `0` and a count of `"0"` mean unlimited.
Administrators have no limits, except that `retention` also applies to them. Their requests per minute are those of the
setting `LINKMGR_RATE_LIMIT`, also on a plan with its own.""",
    records={
        "Plan": record(
            id=ID,
            name=text("Pro"),
            free=flag(False),
            prices={
                "type": ["object", "null"],
                "properties": {period: {"type": "number", "examples": [9]} for period in _PRICES},
                "required": list(_PRICES),
                "additionalProperties": False,
            },
            limits=record(**{name: _limit(name) for name in (*NUMBERS, *COUNTED, *SWITCHED)}),
        )
    },
    tables={"Limits of a plan": "Plan.limits"},
    operations=(
        Operation(
            "GET",
            "/api/plans",
            "List plans",
            all_of("Plan"),
            access=Access.ADMINISTRATOR,
            description="All plans in one response: `limit` and `page` are ignored.",
        ),
        Operation(
            "PUT",
            "/api/plan/{plan_id}/user/{user_id}",
            "Subscribe a user to a plan",
            done("User has been subscribed to this plan."),
            plans.Subscription,
            {"type": "yearly"},
            access=Access.ADMINISTRATOR,
        ),
    ),
)
