from linkmgr.console.forms import BOTH
from linkmgr.console.frame import bp
from linkmgr.console.stored_forms import StoredForm
from linkmgr.schemas.splash import SPLASH_PAGES


class SplashForm(StoredForm):
    preview = "splash"
    used = "link"
    example = (
        "A splash page appears for some seconds before the target of a link. For example, it "
        "announces a sale, or thanks a sponsor."
    )
    consequence = "Links that show it redirect directly from then on."


FORM = SplashForm(SPLASH_PAGES)
FORM.add_urls("/splash", "/splash/new", "/splash/<id:row_id>/edit", "/splash/<id:row_id>/delete")
bp.add_url_rule("/splash/<id:row_id>/preview", "splash_preview", FORM.preview_page)
bp.add_url_rule("/splash/preview", "splash_preview_typed", FORM.preview_page, methods=BOTH)
