"""/api/plans and /api/plan"""

from linkmgr.openapi.model import Access, Operation, Section
from linkmgr.openapi.schemas import all_of, done
from linkmgr.openapi.usual import record
from linkmgr.resources.plans import Plan, Subscription

SECTION = Section(
    name="Plans",
    description=Plan.about,
    records={"Plan": record(Plan)},
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
            Subscription,
            {"type": "yearly"},
            access=Access.ADMINISTRATOR,
        ),
    ),
)
