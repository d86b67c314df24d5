"""/api/pixels and /api/pixel"""

from linkmgr.openapi.model import COUNTED
from linkmgr.openapi.usual import section
from linkmgr.resources.pixels import Pixel

SECTION = section(
    Pixel,
    "Pixels",
    added=COUNTED,
)
