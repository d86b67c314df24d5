"""/api/plans and /api/plan, for administrators"""

from flask import Blueprint

from linkmgr.fields.bodies import body
from linkmgr.repository import plans
from linkmgr.resources.plans import Subscription
from linkmgr.web.responses import Json, ok

bp = Blueprint("plans", __name__)


@bp.get("/plans")
def index() -> Json:
    return ok(data=plans.all_plans())


@bp.put("/plan/<id:plan_id>/user/<id:user_id>")
def subscribe(plan_id: int, user_id: int) -> Json:
    plans.subscribe(plan_id, user_id, **body(Subscription))
    return ok("User has been subscribed to this plan.")
