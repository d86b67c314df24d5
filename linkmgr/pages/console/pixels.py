"""Pixels."""

from linkmgr.pages.console.forms import Form
from linkmgr.resources.pixels import Pixel


class PixelForm(Form):
    used = "link"
    example = (
        "A pixel reports the visitors of your links to an advertising or analytics service. For example, Google "
        "Analytics with the id G-ABC1234567."
    )
    consequence = "Links that use it no longer report their visitors to the service."


FORM = PixelForm(Pixel)
