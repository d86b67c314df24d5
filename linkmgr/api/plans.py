"""/api/plans and /api/plan, for administrators"""

from flask import Blueprint

from linkmgr.fields.base import Choice, Expiration, New, body
from linkmgr.fields.member import member
from linkmgr.repository import plans
from linkmgr.web.responses import Json, ok

bp = Blueprint("plans", __name__)


class Subscription(New):
    type = member(
        Choice(("monthly", "yearly", "lifetime"), required=True),
        "The period: a calendar month, a calendar year, or without an end.",
        "yearly",
    )
    expiration = member(
        Expiration(),
        "The end of the plan, whatever the type. A time in the past ends the plan. Free plans have no end.",
        "2030-12-31 23:59:59",
    )


@bp.get("/plans")
def index() -> Json:
    return ok(data=plans.all_plans())


@bp.put("/plan/<id:plan_id>/user/<id:user_id>")
def subscribe(plan_id: int, user_id: int) -> Json:
    plans.subscribe(plan_id, user_id, **body(Subscription))
    return ok("User has been subscribed to this plan.")
