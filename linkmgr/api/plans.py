from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.web.operation import Section, operation
from linkmgr.core.web.responses import Json, changed, created, ok, reading, record
from linkmgr.repository import plans
from linkmgr.schemas.plans import (
    Plan,
    PlanCreate,
    PlanUpdate,
    Subscription,
    change_plan,
    create_plan,
    price_problem,
)

bp = Blueprint("plans", __name__, url_prefix="/api")
_ABOUT = """\
For administrators. Plans limit growth: adding a row beyond a count is a 400, and
using a feature that is not `enabled` is a 403. Existing rows can still be read, changed and
deleted. A limit of `0` and a count of `"0"` mean unlimited. Administrators have no limits, except
that `retention` also applies to them. Their requests per minute are those of the setting
`LINKMGR_RATE_LIMIT`, also on a plan with its own."""
SECTION = Section(
    "plans", "Plans", _ABOUT, lambda: shapes.records_of(Plan), tables={"Limits of a plan": "Plan.limits"}
)


@bp.get("/plans")
@operation("admin", "plans.list", shapes.all_of(Plan))
def index() -> Json:
    """List plans.

    All plans in one response: `limit` and `page` are ignored.
    """
    return ok(data=[record(Plan, plan) for plan in plans.all_plans()])


@bp.get("/plan/<id:plan_id>")
@operation("admin", "plans.get", shapes.reading_schema(Plan), has_etag=True)
def read(plan_id: int) -> Response:
    """Read a plan."""
    return reading(Plan, plans.record(plan_id))


@bp.post("/plan/add")
@operation(
    "admin",
    "plans.create",
    shapes.created_schema(Plan),
    body=PlanCreate,
    errors=("plan_name_taken",),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Add a plan."""
    if price_problem(new):
        raise plans.free_plan_with_prices()
    return created(Plan, plans.record(create_plan(new)["id"]))


@bp.put("/plan/<id:plan_id>/update")
@operation(
    "admin",
    "plans.update",
    shapes.changed_schema("Plan has been updated successfully.", Plan),
    body=PlanUpdate,
    errors=("plan_name_taken",),
    row="plans",
    has_etag=True,
)
def update(changes: Row, plan_id: int) -> Response:
    """Change a plan."""
    change_plan(plan_id, changes)
    return changed("Plan has been updated successfully.", Plan, plans.record(plan_id))


@bp.put("/plan/<id:plan_id>/user/<id:user_id>")
@operation(
    "admin",
    "plans.subscribe",
    shapes.done("User has been subscribed to this plan."),
    body=Subscription,
    example={"type": "yearly"},
    row="users",
)
def subscribe(subscription: Row, plan_id: int, user_id: int) -> Json:
    """Subscribe a user to a plan."""
    plans.subscribe(plan_id, user_id, **subscription)
    return ok("User has been subscribed to this plan.")
