"""Splash pages."""

from linkmgr.api import splash as api
from linkmgr.pages.console import resources
from linkmgr.repository import splash

FORM = resources.resource(
    "splash", splash, api.NewSplash, api.SplashChanges,
    name="splash_page",
    plural="splash",
    noun="splash page",
    labels={"name": "Name", "title": "Heading", "message": "Text", "link": "Button link", "counter": "Seconds",
            "banner": "Image"},
    defaults={"counter": "5"},
)  # fmt: skip
resources.add_preview(FORM, "splash")
