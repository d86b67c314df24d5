from linkmgr.console.frame import blueprint
from linkmgr.console.stored_forms import StoredForm
from linkmgr.features.utm.schema import UTM_TEMPLATES

bp = blueprint("utm_pages", "/console")


class UtmForm(StoredForm):
    bp = bp
    list_template = "console/utm.html"
    example = (
        "A template fills in the UTM parameters of a link, by which statistics tell where visitors "
        "come from. For example, Newsletter with the source newsletter and the medium email."
    )
    consequence = "Links keep the parameters that they have from it."


FORM = UtmForm(UTM_TEMPLATES)
FORM.add_urls("/utm", "/utm/new", "/utm/<id:row_id>/edit", "/utm/<id:row_id>/delete")
