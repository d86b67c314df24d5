from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.query import NAMED_PAGING, PAGING, named_paging, page_limit, page_number
from linkmgr.core.outbound import domain_check, fetch
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, changed, created, listing, ok, reading
from linkmgr.qr import logos
from linkmgr.repository import domains
from linkmgr.schemas.domains import Domain, change_domain, create_domain

bp = Blueprint("domains", __name__, url_prefix="/api")
_ERRORS = ("redirect_branded", "target_blocked", *logos.ERRORS)
_MISSING = shapes.object_of(
    path="/summer-sale",
    visits=12,
    last=shapes.DAY,
    days=shapes.array_of(shapes.object_of(date=shapes.DAY, visits=5)),
)
SECTION = Section(
    "domains",
    "Branded domains",
    prose(__file__, check=domain_check, fetch=fetch, domains=domains),
    lambda: shapes.records_of(Domain) | {"MissingPath": _MISSING},
)


@bp.get("/domains")
@operation("domains:read", "domains.list", shapes.listing("domains", Domain), query=NAMED_PAGING)
def index() -> Json:
    """List branded domains."""
    return listing("domains", domains.index(user_id(), **named_paging()), Domain)


@bp.get("/domain/<id:domain_id>")
@operation("domains:read", "domains.get", shapes.reading(Domain), has_etag=True)
def read(domain_id: int) -> Response:
    """Read a branded domain."""
    return reading(Domain, domains.read(user_id(), domain_id))


@bp.get("/domain/<id:domain_id>/missing")
@operation(
    "domains:read",
    "domains.listMissing",
    shapes.listing("missing", "MissingPath"),
    query={name: PAGING[name] for name in ("limit", "page")},
    values={"domains": domains},
)
def missing_paths(domain_id: int) -> Json:
    """List the paths that visitors did not find.

    These are the paths of the last {domains.KEPT_DAYS} days that could be aliases, those with the most
    visits first. `days` has the visits of each day in UTC. When a domain has more than
    {domains.MAX_MISSING:,} paths, or very many in a few seconds, the half of them with the fewest visits
    is counted as `{domains.OTHER_PATHS}`.
    """
    domains.read(user_id(), domain_id)
    return listing("missing", domains.missing(user_id(), domain_id, limit=page_limit(), number=page_number()))


@bp.post("/domain/add")
@operation(
    "domains:create",
    "domains.create",
    shapes.created(Domain),
    body=Domain.creates(),
    example={
        "domain": "https://go.example.com",
        "redirectroot": "https://example.com/",
        "redirect404": "https://example.com/missing",
    },
    errors=("plan_feature", "plan_limit", "domain_taken", "domain_unproven", *_ERRORS),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Add a branded domain."""
    return created(Domain, create_domain(user_id(), new))


@bp.put("/domain/<id:domain_id>/update")
@operation(
    "domains:write",
    "domains.update",
    shapes.changed("Domain has been updated successfully.", Domain),
    body=Domain.updates(),
    stored=domains.read,
    errors=_ERRORS,
    row="domains",
    has_etag=True,
)
def update(changes: Row, domain_id: int) -> Response:
    """Change a branded domain."""
    return changed("Domain has been updated successfully.", Domain, change_domain(user_id(), domain_id, changes))


@bp.delete("/domain/<id:domain_id>/delete")
@operation(
    "domains:write",
    "domains.delete",
    shapes.done("Domain has been deleted successfully."),
    errors=("domain_in_use",),
    row="domains",
)
def delete(domain_id: int) -> Json:
    """Delete a branded domain.

    A domain that links use cannot be deleted.
    """
    domains.delete(user_id(), domain_id)
    return ok("Domain has been deleted successfully.")
