from linkmgr.pages.console.forms import BOTH
from linkmgr.pages.console.frame import bp
from linkmgr.pages.console.stored_forms import StoredForm
from linkmgr.resources.utm import UTM_TEMPLATES


class UtmForm(StoredForm):
    path = "/utm"
    list_template = "console/utm.html"
    example = (
        "A template fills in the UTM parameters of a link, by which statistics tell where visitors come from. For "
        "example, Newsletter with the source newsletter and the medium email."
    )
    consequence = "Links keep the parameters that they have from it."


FORM = UtmForm(UTM_TEMPLATES)
bp.add_url_rule("/utm", "utms", FORM.show_list)
bp.add_url_rule("/utm/new", "utm_new", FORM.new_page, methods=BOTH)
bp.add_url_rule("/utm/<id:row_id>/edit", "utm_edit", FORM.edit_page, methods=BOTH)
bp.add_url_rule("/utm/<id:row_id>/delete", "utm_delete", FORM.delete_page, methods=BOTH)
