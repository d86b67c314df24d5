"""Splash pages."""

from linkmgr.pages.console import resources
from linkmgr.resources.splash import Splash

FORM = resources.declared(
    Splash,
    name="splash_page",
    heading="Splash pages",
    used="link",
    counted="splash_pages",
    example="A splash page appears for some seconds before the target of a link. For example, it announces a sale, or "
    "thanks a sponsor.",
    consequence="Links that show it redirect directly from then on.",
)
resources.add_preview(FORM, "splash")
