"""The statistics of a link or a QR code in its single read."""

from linkmgr.core.fields.shapes import map_of, object_of, text
from linkmgr.visits.dimensions import TOPS

_COUNTS = map_of(text("12", pattern="^[0-9]+$"), "Germany")
STATISTICS = object_of(
    clicks=12,
    uniqueClicks=9,
    **dict.fromkeys(TOPS, _COUNTS),
    socialCount=object_of(facebook=1, twitter=0, instagram=3),
)
