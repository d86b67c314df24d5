"""/api/pixels and /api/pixel"""

from linkmgr.api import pixels
from linkmgr.openapi.model import COUNTED, PAGING, Member, Operation, Resource
from linkmgr.openapi.schemas import CREATED, ID, TIMESTAMP, changed, choice, done, listing, reading, record, text

RESOURCE = Resource(
    name="Pixels",
    description="Pixels fire before the visitor of a link is redirected. Send their ids as the `pixels` of a link.",
    members={
        "type": Member("gtmpixel", "The network that the pixel reports to. It cannot be changed."),
        "name": Member("Shop", "Its name in lists."),
        "tag": Member("GTM-ABC123", "The id that the network assigned to you."),
    },
    records={
        "Pixel": record(id=ID, type=choice(*pixels.TYPES), name=text("Shop"), tag=text("GTM-ABC123"), date=TIMESTAMP),
    },
    operations=(
        Operation("GET", "/api/pixels", "List pixels", listing("pixels", "Pixel"), query=PAGING),
        Operation("GET", "/api/pixel/{pixel_id}", "Read a pixel", reading("Pixel"), tagged=True),
        Operation(
            "POST",
            "/api/pixel/add",
            "Add a pixel",
            CREATED,
            pixels.NewPixel,
            {"type": "gtmpixel", "name": "Shop", "tag": "GTM-ABC123"},
            codes=COUNTED,
        ),
        Operation(
            "PUT",
            "/api/pixel/{pixel_id}/update",
            "Change a pixel",
            changed("Pixel has been updated successfully.", "Pixel"),
            pixels.PixelChanges,
            {"tag": "GTM-XYZ789"},
            tagged=True,
        ),
        Operation(
            "DELETE", "/api/pixel/{pixel_id}/delete", "Delete a pixel", done("Pixel has been deleted successfully.")
        ),
    ),
)
