"""Splash pages."""

from linkmgr.pages.console.forms import Form
from linkmgr.resources.splash import Splash


class SplashForm(Form):
    preview = "splash"
    used = "link"
    counted = "splash_pages"
    example = (
        "A splash page appears for some seconds before the target of a link. For example, it announces a sale, or "
        "thanks a sponsor."
    )
    consequence = "Links that show it redirect directly from then on."


FORM = SplashForm(Splash)
