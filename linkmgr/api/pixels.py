from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.query import NAMED_PAGING, named_paging
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation
from linkmgr.core.web.responses import Json, changed, created, listing, ok, reading
from linkmgr.repository import pixels
from linkmgr.schemas.pixels import Pixel

bp = Blueprint("pixels", __name__, url_prefix="/api")
_ABOUT = """\
Pixels fire before the visitor of a link is redirected. Send their ids as the `pixels` of a link."""
SECTION = Section("pixels", "Pixels", _ABOUT, lambda: shapes.records_of(Pixel))


@bp.get("/pixels")
@operation("pixels:read", "pixels.list", shapes.listing_schema("pixels", Pixel), query=NAMED_PAGING)
def index() -> Json:
    """List pixels."""
    return listing("pixels", pixels.index(user_id(), **named_paging()), Pixel)


@bp.get("/pixel/<id:pixel_id>")
@operation("pixels:read", "pixels.get", shapes.reading_schema(Pixel), has_etag=True)
def read(pixel_id: int) -> Response:
    """Read a pixel."""
    return reading(Pixel, pixels.read(user_id(), pixel_id))


@bp.post("/pixel/add")
@operation(
    "pixels:create",
    "pixels.create",
    shapes.created_schema(Pixel),
    body=Pixel.creates(),
    example={"type": "gtmpixel", "name": "Shop", "tag": "GTM-ABC123"},
    errors=("plan_feature", "plan_limit"),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Add a pixel."""
    return created(Pixel, pixels.add(user_id(), new))


@bp.put("/pixel/<id:pixel_id>/update")
@operation(
    "pixels:write",
    "pixels.update",
    shapes.changed_schema("Pixel has been updated successfully.", Pixel),
    body=Pixel.updates(),
    stored=pixels.read,
    row="pixels",
    has_etag=True,
)
def update(changes: Row, pixel_id: int) -> Response:
    """Change a pixel."""
    return changed("Pixel has been updated successfully.", Pixel, pixels.update(user_id(), pixel_id, changes))


@bp.delete("/pixel/<id:pixel_id>/delete")
@operation(
    "pixels:write",
    "pixels.delete",
    shapes.done("Pixel has been deleted successfully."),
    row="pixels",
)
def delete(pixel_id: int) -> Json:
    """Delete a pixel."""
    pixels.delete(user_id(), pixel_id)
    return ok("Pixel has been deleted successfully.")
