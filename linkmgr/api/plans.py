"""/api/plans and /api/plan, for administrators"""

from flask import Blueprint

from linkmgr.db.statements import Row
from linkmgr.repository import plans
from linkmgr.resources import shapes
from linkmgr.resources.plans import Plan, Subscription
from linkmgr.web.operation import Section, operation
from linkmgr.web.responses import Json, ok

bp = Blueprint("plans", __name__)
_ABOUT = """\
For administrators. Plans limit growth: adding a row beyond a count is a 400, and using a feature that is not `enabled`
is a 403. Existing rows can still be read, changed and deleted. A limit of `0` and a count of `"0"` mean unlimited.
Administrators have no limits, except that `retention` also applies to them. Their requests per minute are those of the
setting `LINKMGR_RATE_LIMIT`, also on a plan with its own."""
SECTION = Section("plans", "Plans", _ABOUT, lambda: shapes.records_of(Plan), tables={"Limits of a plan": "Plan.limits"})


@bp.get("/plans")
@operation("admin", "plans.list", shapes.all_of(Plan))
def index() -> Json:
    """List plans.

    All plans in one response: `limit` and `page` are ignored.
    """
    return ok(data=plans.all_plans())


@bp.put("/plan/<id:plan_id>/user/<id:user_id>")
@operation(
    "admin",
    "plans.subscribe",
    shapes.done("User has been subscribed to this plan."),
    body=Subscription,
    example={"type": "yearly"},
    row="users",
    changes_callers=True,
)
def subscribe(subscription: Row, plan_id: int, user_id: int) -> Json:
    """Subscribe a user to a plan."""
    plans.subscribe(plan_id, user_id, **subscription)
    return ok("User has been subscribed to this plan.")
