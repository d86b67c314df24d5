from flask import Blueprint

from linkmgr.core.errors import AppError
from linkmgr.core.fields import shapes
from linkmgr.core.settings import settings
from linkmgr.core.web import outbound_budget
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import operation
from linkmgr.core.web.responses import Json, ok
from linkmgr.features.health import repository as link_checks

bp = Blueprint("health", __name__, url_prefix="/api")
DONE = "The targets will be checked in a moment."


def check_again(owner: int, link_id: int) -> None:
    if not settings().link_check:
        raise AppError("checks_off")
    outbound_budget.spend(owner)
    link_checks.check_again(owner, link_id)


@bp.post("/url/<id:link_id>/check")
@operation(
    "links:write",
    "links.check",
    shapes.done(DONE),
    errors=("checks_off", "fetches_limited"),
    restricted=("own_only", "domains"),
    apart=True,
)
def check(link_id: int) -> Json:
    """Check the targets of a link again.

    `health` has the result some seconds later. This counts as one of the requests to other hosts
    that you can cause in an hour.
    """
    check_again(user_id(), link_id)
    return ok(DONE)
