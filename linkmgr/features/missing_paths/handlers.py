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
_PAGES = {name: PAGING[name] for name in ("limit", "page")}


@bp.get("/domain/<id:domain_id>/missing")
@operation(
    "domains:read",
    "domains.listMissing",
    shapes.listing_schema("missing", "MissingPath"),
    query=_PAGES,
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
    return _listing(user_id(), domain_id)


@bp.get("/domains/missing")
@operation(
    "admin",
    "domains.listOwnMissing",
    shapes.listing_schema("missing", "MissingPath"),
    query=_PAGES,
    values={"paths": missing_paths},
)
def own() -> Json:
    """List the paths that visitors of the service did not find.

    Those of its own host, counted and listed as the ones of a branded domain.
    """
    return _listing(missing_paths.OWN, missing_paths.OWN)


def _listing(owner: int, domain_id: int) -> Json:
    paths = missing_paths.index(owner, domain_id, limit=page_limit(), number=page_number())
    return listing("missing", paths)
