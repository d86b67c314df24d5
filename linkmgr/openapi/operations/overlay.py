"""/api/overlay"""

from linkmgr.openapi.model import COUNTED, PAGING, Operation
from linkmgr.openapi.schemas import ID, TIMESTAMP, listing, map_of, record, text
from linkmgr.openapi.usual import section
from linkmgr.resources.overlay import Overlay

SECTION = section(
    Overlay,
    "CTA overlays",
    change={"label": "Have a look", "position": "top"},
    codes=("overlay_colours_too_close",),
    added=COUNTED,
    deleted="Its answers are deleted too. Links with this overlay redirect without it from then on.",
    records={"OverlayAnswer": record(id=ID, answer=map_of(text("visitor@example.com"), "email"), date=TIMESTAMP)},
    others=(
        Operation(
            "GET",
            "/api/overlay/{overlay_id}/answers",
            "List the answers to an overlay",
            listing("answers", "OverlayAnswer"),
            query=PAGING,
        ),
    ),
)
