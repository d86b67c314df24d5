from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.qr import OBJECTS
from linkmgr.core.fields.query import NAMED_PAGING, STATISTICS, named_paging, wants_statistics
from linkmgr.core.outbound import fetch
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, listing, ok, updated, versioned, with_statistics
from linkmgr.qr import image, logos
from linkmgr.repository import qr
from linkmgr.schemas.qr import QrCode, change_code, create_code

bp = Blueprint("qr", __name__, url_prefix="/api")
SECTION = Section(
    "qr",
    "QR codes",
    prose(__file__, image=image, fetch=fetch, logos=logos),
    lambda: shapes.records_of(QrCode),
    tables={f"Data of the type {name}": schema.__name__ for name, schema in OBJECTS.items()},
    nouns={"qr": "QR code"},
)

_RECORD = {"details": shapes.ref("QrCode"), "data": shapes.ref("Statistics"), "record": shapes.ref("QrCode")}
_ERRORS = (*logos.UNUSABLE, "colours_too_close", "link_branded", "target_blocked", "short_link_unknown")


@bp.get("/qr")
@operation(
    "qr:read",
    "qr.list",
    shapes.listing_schema("qrs", QrCode),
    query=NAMED_PAGING,
    restricted=("own_only", "domains"),
)
def index() -> Json:
    """List QR codes."""
    return listing("qrs", qr.index(user_id(), **named_paging()))


@bp.get("/qr/<id:qr_id>")
@operation(
    "qr:read",
    "qr.get",
    shapes.success(**_RECORD) | {"required": ["error", "details", "record"]},
    query=STATISTICS,
    has_etag=True,
    restricted=("own_only", "domains"),
)
def read(qr_id: int) -> Response:
    """Read a QR code."""
    code = qr.read_from_replica(user_id(), qr_id, statistics=wants_statistics())
    return versioned(code["version"], **with_statistics(QrCode, code))


@bp.post("/qr/add")
@operation(
    "qr:create",
    "qr.create",
    shapes.success(id=shapes.ID, link=shapes.own_url("qr/bcd234fgh567"), **_RECORD),
    body=QrCode.creates(),
    example={"type": "link", "data": "https://example.com/", "name": "Poster", "foreground": "rgb(0,0,128)"},
    errors=_ERRORS,
    has_etag=True,
    restricted=("own_only",),
)
def add(new: Row) -> Response:
    """Add a QR code."""
    code = create_code(user_id(), new)
    beside = {"id": code["id"], "link": code["link"]}
    return updated(None, code["version"], beside, verb="set", **with_statistics(QrCode, code))


@bp.put("/qr/<id:qr_id>/update")
@operation(
    "qr:write",
    "qr.update",
    shapes.success(message="QR has been updated successfully.", **_RECORD),
    body=QrCode.updates(),
    stored=qr.read,
    example={"data": "https://example.com/winter"},
    errors=_ERRORS,
    row="qrs",
    has_etag=True,
    restricted=("own_only",),
)
def update(changes: Row, qr_id: int) -> Response:
    """Change a QR code."""
    code = change_code(user_id(), qr_id, changes)
    return updated("QR has been updated successfully.", code["version"], **with_statistics(QrCode, code))


@bp.delete("/qr/<id:qr_id>/delete")
@operation(
    "qr:write",
    "qr.delete",
    shapes.done("QR Code has been deleted successfully."),
    row="qrs",
    restricted=("own_only",),
)
def delete(qr_id: int) -> Json:
    """Delete a QR code."""
    qr.delete(user_id(), qr_id)
    return ok("QR Code has been deleted successfully.")
