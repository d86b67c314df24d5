from linkmgr.console.stored_forms import StoredForm
from linkmgr.schemas.pixels import PIXELS


class PixelForm(StoredForm):
    list_template = "console/pixels.html"
    used = "link"
    example = (
        "A pixel reports the visitors of your links to an advertising or analytics service. For "
        "example, Google Analytics with the id G-ABC1234567."
    )
    consequence = "Links that use it no longer report their visitors to the service."


FORM = PixelForm(PIXELS)
FORM.add_urls("/pixels", "/pixels/new", "/pixels/<id:row_id>/edit", "/pixels/<id:row_id>/delete")
