from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.query import NAMED_PAGING, named_paging
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation
from linkmgr.core.web.responses import Json, changed, created, listing, ok, reading
from linkmgr.repository import bio
from linkmgr.schemas.bio import BioPage

bp = Blueprint("bio", __name__, url_prefix="/api")
_ABOUT = """\
A bio page is always on the host of this service. Plans do not limit their number; a
custom alias needs the feature `alias`."""
SECTION = Section("bio", "Bio pages", _ABOUT, lambda: shapes.records_of(BioPage), nouns={"bio": "bio page"})


@bp.get("/bio")
@operation("bio:read", "bio.list", shapes.listing_schema("bios", BioPage), query=NAMED_PAGING)
def index() -> Json:
    """List bio pages."""
    return listing("bios", bio.index(user_id(), **named_paging()), BioPage)


@bp.get("/bio/<id:bio_id>")
@operation("bio:read", "bio.get", shapes.reading_schema(BioPage), has_etag=True)
def read(bio_id: int) -> Response:
    """Read a bio page."""
    return reading(BioPage, bio.read(user_id(), bio_id))


@bp.post("/bio/add")
@operation(
    "bio:create",
    "bio.create",
    shapes.created_schema(BioPage, alias="dana", shorturl=shapes.own_url("dana")),
    body=BioPage.creates(),
    example={
        "name": "Dana",
        "theme": "ocean",
        "links": [{"title": "Shop", "url": "https://example.com/shop"}],
    },
    errors=("plan_feature", "alias_taken", "target_blocked"),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Add a bio page."""
    return created(BioPage, bio.add(user_id(), new), "alias", "shorturl")


@bp.put("/bio/<id:bio_id>/update")
@operation(
    "bio:write",
    "bio.update",
    shapes.changed_schema("Bio page has been updated successfully.", BioPage),
    body=BioPage.updates(),
    stored=bio.read,
    example={"bio": "I write.", "theme": "dark"},
    errors=("plan_feature", "alias_taken", "target_blocked"),
    row="bios",
    has_etag=True,
)
def update(changes: Row, bio_id: int) -> Response:
    """Change a bio page."""
    return changed("Bio page has been updated successfully.", BioPage, bio.update(user_id(), bio_id, changes))


@bp.delete("/bio/<id:bio_id>/delete")
@operation(
    "bio:write",
    "bio.delete",
    shapes.done("Bio page has been deleted successfully."),
    row="bios",
)
def delete(bio_id: int) -> Json:
    """Delete a bio page."""
    bio.delete(user_id(), bio_id)
    return ok("Bio page has been deleted successfully.")
