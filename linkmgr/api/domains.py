"""/api/domains and /api/domain"""

from flask import Blueprint, Response

from linkmgr.fields.base import Changes, New, Target, Text, body, changes_of, paging
from linkmgr.outbound import domain_check
from linkmgr.repository import domains
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("domains", __name__)


class Domain(Text):
    """A host name with http:// or https://."""

    def clean(self, text: str) -> str:
        return domain_check.normalize(text)


class NewDomain(New):
    domain = Domain(required=True)
    redirectroot = Target()
    redirect404 = Target()


class DomainChanges(Changes):
    redirectroot = Target(allow_empty=True)
    redirect404 = Target(allow_empty=True)


@bp.get("/domains")
def index() -> Json:
    return listing("domains", domains.index(user_id(), **paging()))


@bp.get("/domain/<id:domain_id>")
def read(domain_id: int) -> Response:
    domain = domains.read(user_id(), domain_id)
    return versioned(domain.pop("version"), data=domain)


@bp.post("/domain/add")
def add() -> Json:
    new = body(NewDomain)
    domain_check.check(new["domain"])
    return ok(id=domains.add(user_id(), **new))


@bp.put("/domain/<id:domain_id>/update")
def update(domain_id: int) -> Response:
    changes = changes_of(DomainChanges, lambda: domains.read(user_id(), domain_id))
    domain = domains.update(user_id(), domain_id, **changes)
    return updated("Domain has been updated successfully.", domain.pop("version"), data=domain)


@bp.delete("/domain/<id:domain_id>/delete")
def delete(domain_id: int) -> Json:
    domains.delete(user_id(), domain_id)
    return ok("Domain has been deleted successfully.")
