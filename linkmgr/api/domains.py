"""/api/domains and /api/domain"""

from flask import Blueprint, Response
from marshmallow import ValidationError

from linkmgr.db.statements import Row
from linkmgr.fields import accents
from linkmgr.fields.base import Changes, Color, New, Target, Text, body, changes_of
from linkmgr.fields.query import paging
from linkmgr.fields.urls import MAX_URL, normalize_domain
from linkmgr.outbound import domain_check
from linkmgr.qr import logos
from linkmgr.repository import domains
from linkmgr.web.auth import user_id
from linkmgr.web.errors import AppError
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("domains", __name__)

MAX_NAME = 60


class Domain(Text):
    """A host name with http:// or https://."""

    def clean(self, text: str) -> str:
        return normalize_domain(text)


class BrandColor(Color):
    """A color in which text on light pages is readable. A lighter one is derived for dark pages."""

    def clean(self, text: str) -> str:
        if text and (problem := accents.problem(super().clean(text))):
            raise ValidationError(problem)
        return text


class NewDomain(New):
    domain = Domain(required=True)
    redirectroot = Target()
    redirect404 = Target()
    brandname = Text(MAX_NAME)
    brandlogo = Text(MAX_URL)
    brandcolor = BrandColor()


class DomainChanges(Changes):
    redirectroot = Target(allow_empty=True)
    redirect404 = Target(allow_empty=True)
    brandname = Text(MAX_NAME, allow_empty=True)
    brandlogo = Text(MAX_URL, allow_empty=True)
    brandcolor = BrandColor(allow_empty=True)


@bp.get("/domains")
def index() -> Json:
    return listing("domains", domains.index(user_id(), **paging()))


@bp.get("/domain/<id:domain_id>")
def read(domain_id: int) -> Response:
    domain = domains.read(user_id(), domain_id)
    return versioned(domain.pop("version"), data=domain)


@bp.post("/domain/add")
def add() -> Json:
    return ok(id=create(user_id(), body(NewDomain)))


@bp.put("/domain/<id:domain_id>/update")
def update(domain_id: int) -> Response:
    changes = changes_of(DomainChanges, lambda: domains.read(user_id(), domain_id))
    domain = change(user_id(), domain_id, changes)
    return updated("Domain has been updated successfully.", domain.pop("version"), data=domain)


@bp.delete("/domain/<id:domain_id>/delete")
def delete(domain_id: int) -> Json:
    domains.delete(user_id(), domain_id)
    return ok("Domain has been deleted successfully.")


def create(owner: int, members: Row) -> int:
    """Check that the domain points to this service, and add it."""
    is_checked = domain_check.check(members["domain"])
    return domains.add(owner, **_with_image(members), is_checked=is_checked)


def change(owner: int, domain_id: int, members: Row) -> Row:
    if "brandlogo" in members and members["brandlogo"] == domains.read(owner, domain_id)["brandlogo"]:
        members = {name: value for name, value in members.items() if name != "brandlogo"}  # keep the image
    return domains.update(owner, domain_id, **_with_image(members))


def check_now(owner: int, domain_id: int) -> str | None:
    """Check that the domain points to this service, and store the problem, or "". Return it, or None if checks are
    off."""
    problem = ""
    try:
        if not domain_check.check(domains.read(owner, domain_id)["domain"]):
            return None
    except AppError as error:
        if error.code != "domain_unproven":
            raise
        problem = error.message
    domains.store_check(owner, domain_id, problem=problem)
    return problem


def _with_image(members: Row) -> Row:
    if "brandlogo" not in members:
        return members
    return members | {"logo": logos.load(members["brandlogo"], member="brandlogo")}
