from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.query import NAMED_PAGING, named_paging
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation
from linkmgr.core.web.responses import Json, changed, created, listing, ok, reading
from linkmgr.repository import splash
from linkmgr.schemas.splash import Splash

bp = Blueprint("splash", __name__, url_prefix="/api")
_ABOUT = """\
A splash page is shown for some seconds before the redirect. Send its id as the `type` of a link."""
SECTION = Section(
    "splash", "Splash pages", _ABOUT, lambda: shapes.records_of(Splash), nouns={"splash": "splash page"}
)


@bp.get("/splash")
@operation("splash:read", "splash.list", shapes.listing_schema("splash", Splash), query=NAMED_PAGING)
def index() -> Json:
    """List splash pages."""
    return listing("splash", splash.index(user_id(), **named_paging()), Splash)


@bp.get("/splash/<id:splash_id>")
@operation("splash:read", "splash.get", shapes.reading_schema(Splash), has_etag=True)
def read(splash_id: int) -> Response:
    """Read a splash page."""
    return reading(Splash, splash.read(user_id(), splash_id))


@bp.post("/splash/add")
@operation(
    "splash:create",
    "splash.create",
    shapes.created_schema(Splash),
    body=Splash.creates(),
    example={"name": "Launch", "title": "One moment", "message": "The sale starts soon."},
    errors=("plan_feature", "plan_limit", "target_blocked"),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Add a splash page."""
    return created(Splash, splash.add(user_id(), new))


@bp.put("/splash/<id:splash_id>/update")
@operation(
    "splash:write",
    "splash.update",
    shapes.changed_schema("Splash page has been updated successfully.", Splash),
    body=Splash.updates(),
    stored=splash.read,
    row="splash_pages",
    errors=("target_blocked",),
    has_etag=True,
)
def update(changes: Row, splash_id: int) -> Response:
    """Change a splash page."""
    return changed(
        "Splash page has been updated successfully.", Splash, splash.update(user_id(), splash_id, changes)
    )


@bp.delete("/splash/<id:splash_id>/delete")
@operation(
    "splash:write",
    "splash.delete",
    shapes.done("Splash page has been deleted successfully."),
    row="splash_pages",
)
def delete(splash_id: int) -> Json:
    """Delete a splash page.

    Links with this splash page redirect without it from then on.
    """
    splash.delete(user_id(), splash_id)
    return ok("Splash page has been deleted successfully.")
