"""The statistics of a link or a QR code in its single read."""

from linkmgr.core.fields.shapes import map_of, named, object_of, text
from linkmgr.visits.dimensions import DIMENSIONS

_COUNT = text("12", pattern="^[0-9]+$")
STATISTICS = object_of(
    clicks=12,
    uniqueClicks=9,
    **{
        dimension.top: map_of(_COUNT, dimension.example, "Counts")
        for dimension in DIMENSIONS
        if dimension.top
    },
    socialCount=named("SocialCount", object_of(facebook=0, twitter=12, instagram=0)),
)
