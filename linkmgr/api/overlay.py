from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.query import NAMED_PAGING, PAGING, named_paging, paging
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, changed, created, listing, ok, reading
from linkmgr.repository import overlay
from linkmgr.schemas.overlay import MAX_CHOICES, Overlay, change_overlay, create_overlay

bp = Blueprint("overlay", __name__, url_prefix="/api")
_ANSWER = shapes.object_of(
    id=shapes.ID, answer=shapes.map_of("visitor@example.com", "email"), date=shapes.TIMESTAMP
)
SECTION = Section(
    "overlay",
    "CTA overlays",
    prose(__file__, choices=MAX_CHOICES, answers=overlay.MAX_ANSWERS),
    lambda: shapes.records_of(Overlay) | {"OverlayAnswer": _ANSWER},
)


@bp.get("/overlay")
@operation("overlay:read", "overlay.list", shapes.listing_schema("cta", Overlay), query=NAMED_PAGING)
def index() -> Json:
    """List CTA overlays."""
    return listing("cta", overlay.index(user_id(), **named_paging()), Overlay)


@bp.get("/overlay/<id:overlay_id>")
@operation("overlay:read", "overlay.get", shapes.reading_schema(Overlay), has_etag=True)
def read(overlay_id: int) -> Response:
    """Read a CTA overlay."""
    return reading(Overlay, overlay.read(user_id(), overlay_id))


@bp.post("/overlay/add")
@operation(
    "overlay:create",
    "overlay.create",
    shapes.created_schema(Overlay),
    body=Overlay.creates(),
    example={"type": "message", "name": "Sale", "message": "Everything must go."},
    errors=("plan_feature", "plan_limit", "overlay_colours_too_close", "target_blocked"),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Add a CTA overlay."""
    return created(Overlay, create_overlay(user_id(), new))


@bp.put("/overlay/<id:overlay_id>/update")
@operation(
    "overlay:write",
    "overlay.update",
    shapes.changed_schema("Overlay has been updated successfully.", Overlay),
    body=Overlay.updates(),
    stored=overlay.read,
    example={"label": "Have a look", "position": "top"},
    errors=("overlay_colours_too_close", "target_blocked"),
    row="overlays",
    has_etag=True,
)
def update(changes: Row, overlay_id: int) -> Response:
    """Change a CTA overlay."""
    return changed(
        "Overlay has been updated successfully.", Overlay, change_overlay(user_id(), overlay_id, changes)
    )


@bp.delete("/overlay/<id:overlay_id>/delete")
@operation(
    "overlay:write",
    "overlay.delete",
    shapes.done("Overlay has been deleted successfully."),
    row="overlays",
)
def delete(overlay_id: int) -> Json:
    """Delete a CTA overlay.

    Its answers are deleted too. Links with this overlay redirect without it from then on.
    """
    overlay.delete(user_id(), overlay_id)
    return ok("Overlay has been deleted successfully.")


@bp.get("/overlay/<id:overlay_id>/answers")
@operation(
    "overlay:read",
    "overlay.listAnswers",
    shapes.listing_schema("answers", "OverlayAnswer"),
    query=PAGING,
)
def answers(overlay_id: int) -> Json:
    """List the answers to an overlay."""
    return listing("answers", overlay.answers(user_id(), overlay_id, **paging()))
