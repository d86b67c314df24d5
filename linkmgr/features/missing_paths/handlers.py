from flask import Blueprint

from linkmgr.core.fields import shapes
from linkmgr.core.fields.query import PAGING, page_limit, page_number
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import operation
from linkmgr.core.web.responses import Json, listing
from linkmgr.features.missing_paths import repository as missing_paths
from linkmgr.repository import domains

bp = Blueprint("missing_paths", __name__, url_prefix="/api")
MISSING_PATH = shapes.object_of(
    path="/summer-sale",
    visits=12,
    last=shapes.DAY,
    days=shapes.array_of(shapes.object_of(date=shapes.DAY, visits=5)),
)


@bp.get("/domain/<id:domain_id>/missing")
@operation(
    "domains:read",
    "domains.listMissing",
    shapes.listing_schema("missing", "MissingPath"),
    query={name: PAGING[name] for name in ("limit", "page")},
    values={"paths": missing_paths},
)
def index(domain_id: int) -> Json:
    """List the paths that visitors did not find.

    These are the paths of the last {paths.KEPT_DAYS} days that could be aliases, those with the
    most visits first. `days` has the visits of each day in UTC. When a domain has more than
    {paths.MAX_PATHS:,} paths, or very many in a few seconds, the half of them with the fewest
    visits is counted as `{paths.OTHER}`.
    """
    domains.read(user_id(), domain_id)
    paths = missing_paths.index(user_id(), domain_id, limit=page_limit(), number=page_number())
    return listing("missing", paths)
