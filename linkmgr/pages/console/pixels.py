from linkmgr.pages.console.forms import BOTH
from linkmgr.pages.console.frame import bp
from linkmgr.pages.console.stored_forms import StoredForm
from linkmgr.resources.pixels import PIXELS


class PixelForm(StoredForm):
    path = "/pixels"
    list_template = "console/pixels.html"
    used = "link"
    example = (
        "A pixel reports the visitors of your links to an advertising or analytics service. For example, Google "
        "Analytics with the id G-ABC1234567."
    )
    consequence = "Links that use it no longer report their visitors to the service."


FORM = PixelForm(PIXELS)
bp.add_url_rule("/pixels", "pixels", FORM.show_list)
bp.add_url_rule("/pixels/new", "pixel_new", FORM.new_page, methods=BOTH)
bp.add_url_rule("/pixels/<id:row_id>/edit", "pixel_edit", FORM.edit_page, methods=BOTH)
bp.add_url_rule("/pixels/<id:row_id>/delete", "pixel_delete", FORM.delete_page, methods=BOTH)
