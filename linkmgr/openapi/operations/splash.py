"""/api/splash"""

from linkmgr.openapi.model import COUNTED
from linkmgr.openapi.usual import section
from linkmgr.resources.splash import Splash

SECTION = section(
    Splash,
    "Splash pages",
    added=COUNTED,
    deleted="Links with this splash page redirect without it from then on.",
)
