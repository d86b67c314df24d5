"""/api/qr"""

from linkmgr.fields.qr import OBJECTS
from linkmgr.openapi.operations.stats import visits_of
from linkmgr.openapi.schemas import ID, done, own_url, ref, success, text
from linkmgr.openapi.usual import section
from linkmgr.qr import logos
from linkmgr.resources.qr import QrCode

_RECORD = {"details": ref("QrCode"), "data": ref("Statistics")}

SECTION = section(
    QrCode,
    "QR codes",
    example={"type": "link", "data": "https://example.com/", "name": "Poster", "foreground": "rgb(0,0,128)"},
    change={"data": "https://example.com/winter"},
    codes=(*logos.ERRORS, "colours_too_close", "link_branded", "short_link_unknown"),
    responses={
        "read": success(**_RECORD),
        "add": success(id=ID, link=own_url("qr/bcd234fgh567")),
        "update": success(message=text("QR has been updated successfully."), **_RECORD),
        "delete": done("QR Code has been deleted successfully."),
    },
    others=(visits_of("/api/qr/{qr_id}/visits", "QR code"),),
    tables={f"Data of the type {kind}": schema.__name__ for kind, schema in OBJECTS.items()},
)
