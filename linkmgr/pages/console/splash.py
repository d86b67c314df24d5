"""Splash pages."""

from linkmgr.api import splash as api
from linkmgr.pages.console import plain
from linkmgr.repository import splash

FORM = plain.resource(
    "splash", splash, api.NewSplash, api.SplashChanges,
    name="splash_page",
    plural="splash",
    noun="splash page",
    labels={"name": "Name", "title": "Heading", "message": "Text", "link": "Button link", "counter": "Seconds",
            "banner": "Image"},
    defaults={"counter": "5"},
)  # fmt: skip
plain.add_preview(FORM, "splash")
