from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.query import NAMED_PAGING, named_paging
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation
from linkmgr.core.web.responses import Json, changed, created, listing, ok, reading
from linkmgr.features.utm import repository as utm
from linkmgr.features.utm.schema import UtmTemplate

bp = Blueprint("utm", __name__, url_prefix="/api")
_ABOUT = """\
A named set of UTM parameters, which forms of the console add to the `parameters` of a
link. A link keeps its parameters when the template changes. An account has at most 100."""
SECTION = Section(
    "utm", "UTM templates", _ABOUT, lambda: shapes.records_of(UtmTemplate), nouns={"utm": "UTM template"}
)


@bp.get("/utm")
@operation("utm:read", "utm.list", shapes.listing_schema("utm", UtmTemplate), query=NAMED_PAGING)
def index() -> Json:
    """List UTM templates."""
    return listing("utm", utm.index(user_id(), **named_paging()), UtmTemplate)


@bp.get("/utm/<id:utm_id>")
@operation("utm:read", "utm.get", shapes.reading_schema(UtmTemplate), has_etag=True)
def read(utm_id: int) -> Response:
    """Read a UTM template."""
    return reading(UtmTemplate, utm.read(user_id(), utm_id))


@bp.post("/utm/add")
@operation(
    "utm:create",
    "utm.create",
    shapes.created_schema(UtmTemplate),
    body=UtmTemplate.creates(),
    example={"name": "Newsletter", "utm_source": "newsletter", "utm_medium": "email"},
    errors=("utm_full",),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Add a UTM template."""
    return created(UtmTemplate, utm.add(user_id(), new))


@bp.put("/utm/<id:utm_id>/update")
@operation(
    "utm:write",
    "utm.update",
    shapes.changed_schema("UTM template has been updated successfully.", UtmTemplate),
    body=UtmTemplate.updates(),
    stored=utm.read,
    row="utm_templates",
    has_etag=True,
)
def update(changes: Row, utm_id: int) -> Response:
    """Change a UTM template."""
    return changed(
        "UTM template has been updated successfully.", UtmTemplate, utm.update(user_id(), utm_id, changes)
    )


@bp.delete("/utm/<id:utm_id>/delete")
@operation(
    "utm:write",
    "utm.delete",
    shapes.done("UTM template has been deleted successfully."),
    row="utm_templates",
)
def delete(utm_id: int) -> Json:
    """Delete a UTM template.

    Links keep its parameters.
    """
    utm.delete(user_id(), utm_id)
    return ok("UTM template has been deleted successfully.")
