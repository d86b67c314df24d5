"""/api/pixels and /api/pixel"""

from linkmgr.openapi.model import COUNTED
from linkmgr.openapi.usual import section
from linkmgr.resources.pixels import Pixel

SECTION = section(
    Pixel,
    "Pixels",
    example={"type": "gtmpixel", "name": "Shop", "tag": "GTM-ABC123"},
    change={"tag": "GTM-XYZ789"},
    added=COUNTED,
)
