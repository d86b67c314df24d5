from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.query import NAMED_PAGING, named_paging
from linkmgr.core.outbound import domain_check, fetch
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, changed, created, listing, ok, reading
from linkmgr.qr import logos
from linkmgr.repository import domains
from linkmgr.schemas.domains import Domain, change_domain, create_domain

bp = Blueprint("domains", __name__, url_prefix="/api")
_ERRORS = ("redirect_branded", "target_blocked", *logos.ERRORS)
SECTION = Section(
    "domains",
    "Branded domains",
    prose(__file__, check=domain_check, fetch=fetch),
    lambda: shapes.records_of(Domain),
)


@bp.get("/domains")
@operation("domains:read", "domains.list", shapes.listing_schema("domains", Domain), query=NAMED_PAGING)
def index() -> Json:
    """List branded domains.

    Their `domain` is what the `domain` of a link can be, besides the host of this service.
    """
    return listing("domains", domains.index(user_id(), **named_paging()), Domain)


@bp.get("/domain/<id:domain_id>")
@operation("domains:read", "domains.get", shapes.reading_schema(Domain), has_etag=True)
def read(domain_id: int) -> Response:
    """Read a branded domain."""
    return reading(Domain, domains.read(user_id(), domain_id))


@bp.post("/domain/add")
@operation(
    "domains:create",
    "domains.create",
    shapes.created_schema(Domain),
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
    shapes.changed_schema("Domain has been updated successfully.", Domain),
    body=Domain.updates(),
    stored=domains.read,
    errors=("domain_has_links", *_ERRORS),
    row="domains",
    has_etag=True,
)
def update(changes: Row, domain_id: int) -> Response:
    """Change a branded domain."""
    return changed(
        "Domain has been updated successfully.", Domain, change_domain(user_id(), domain_id, changes)
    )


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
