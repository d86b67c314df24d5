from flask import render_template

from linkmgr.console.admin_access import blueprint
from linkmgr.core.fields.base import MAX_ID
from linkmgr.core.fields.query import query_position
from linkmgr.features.webhooks import outbox
from linkmgr.repository import plans

bp = blueprint("activity_page")

_PER_PAGE = 50


@bp.get("/activity")
def activity() -> str:
    user_id, before = query_position("user"), query_position("before")
    events = outbox.trail(before=before or MAX_ID, user_id=user_id, limit=_PER_PAGE + 1)
    return render_template(
        "administration/activity.html",
        events=events[:_PER_PAGE],
        older=events[_PER_PAGE - 1]["id"] if len(events) > _PER_PAGE else None,
        before=before,
        user_id=user_id,
        plans={None: "Free plan"} | {plan["id"]: plan["name"] for plan in plans.all_plans()},
    )
