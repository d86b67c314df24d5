from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.qr import OBJECTS
from linkmgr.core.fields.query import (
    NAMED_PAGING,
    STATISTICS,
    Parameter,
    named_paging,
    paging,
    values_of,
    wants_statistics,
)
from linkmgr.core.outbound import fetch
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, listing, ok, updated, versioned, with_statistics
from linkmgr.qr import image, logos
from linkmgr.repository import qr, qr_bin
from linkmgr.schemas.qr import QrCode, change_code, create_code

bp = Blueprint("qr", __name__, url_prefix="/api")
SECTION = Section(
    "qr",
    "QR codes",
    prose(__file__, image=image, fetch=fetch, logos=logos, qr_bin=qr_bin),
    lambda: shapes.records_of(QrCode),
    tables={f"Data of the type {name}": schema.__name__ for name, schema in OBJECTS.items()},
    nouns={"qr": "QR code"},
)

_RECORD = {"details": shapes.ref("QrCode"), "data": shapes.ref("Statistics"), "record": shapes.ref("QrCode")}
_READ = shapes.success("QrCodeResponse", **_RECORD) | {"required": ["error", "details", "record"]}
OF_BIN = {
    "bin": Parameter(
        f"`1` lists the QR codes in the bin, which were deleted in the last {qr_bin.DAYS} days, the "
        "last deleted first, without `next` and `after`. The other filters do not apply.",
        enum=["0", "1"],
        default="0",
        title="Flag",
    )
}
TO_BIN = {
    "bin": Parameter(
        f"`1` moves a QR code to the bin: for {qr_bin.DAYS} days `POST /api/qr/{{qr_id}}/restore` "
        "brings it back. `0` deletes it forever, also one in the bin.",
        enum=["0", "1"],
        default="1",
        title="Flag",
    )
}
_ERRORS = (*logos.UNUSABLE, "colours_too_close", "link_branded", "target_blocked", "short_link_unknown")


@bp.get("/qr")
@operation(
    "qr:read",
    "qr.list",
    shapes.listing_schema("qrs", QrCode),
    query=NAMED_PAGING | OF_BIN,
    restricted=("own_only", "domains"),
)
def index() -> Json:
    """List QR codes."""
    if values_of(OF_BIN)["bin"] == "1":
        page = paging()
        if page["after"]:
            raise invalid("after requires bin=0. Use page to list the bin")
        return listing("qrs", qr_bin.index(user_id(), **page), QrCode)
    return listing("qrs", qr.index(user_id(), **named_paging()))


@bp.get("/qr/<id:qr_id>")
@operation(
    "qr:read",
    "qr.get",
    shapes.with_message("", _READ),
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
    shapes.success("QrCodeCreated", id=shapes.ID, link=shapes.own_url("qr/bcd234fgh567"), **_RECORD),
    body=QrCode.creates(),
    example={"type": "link", "data": "https://example.com/", "name": "Poster", "foreground": "rgb(0,0,128)"},
    errors=_ERRORS,
    has_etag=True,
    restricted=("own_only",),
)
def add(new: Row) -> Response:
    """Add a QR code.

    Its image is at `link`. Codes of the type `link` can get another target by `PUT
    /api/qr/{qr_id}/update` after they are printed, and their scans have statistics of their own.
    """
    code = create_code(user_id(), new)
    beside = {"id": code["id"], "link": code["link"]}
    return updated(None, code["version"], beside, verb="set", **with_statistics(QrCode, code))


@bp.put("/qr/<id:qr_id>/update")
@operation(
    "qr:write",
    "qr.update",
    shapes.with_message("QR has been updated successfully.", _READ),
    body=QrCode.updates(),
    stored=qr.read,
    example={"data": "https://example.com/winter"},
    errors=_ERRORS,
    row="kept_qrs",
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
    query=TO_BIN,
    row="kept_qrs",
    restricted=("own_only",),
)
def delete(qr_id: int) -> Json:
    """Delete a QR code.

    It is in the bin afterwards, unless `bin` is `0`.
    """
    delete_code = qr_bin.put if values_of(TO_BIN)["bin"] == "1" else qr.delete
    delete_code(user_id(), qr_id)
    return ok("QR Code has been deleted successfully.")


@bp.post("/qr/<id:qr_id>/restore")
@operation(
    "qr:write",
    "qr.restore",
    shapes.with_message("QR code has been restored successfully.", _READ),
    errors=("target_blocked",),
    has_etag=True,
    restricted=("own_only",),
)
def restore(qr_id: int) -> Response:
    """Restore a QR code from the bin.

    It has its id, URL, image, statistics and channels as before, without channels that were
    deleted meanwhile.
    """
    qr_bin.restore(user_id(), qr_id)
    code = qr.read(user_id(), qr_id)
    message = "QR code has been restored successfully."
    return updated(message, code["version"], **with_statistics(QrCode, code))
