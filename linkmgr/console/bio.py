import re

from flask import g, render_template

from linkmgr.console.controls import FormData
from linkmgr.console.forms import AGAIN, PAGE
from linkmgr.console.frame import bp
from linkmgr.console.stored_forms import StoredForm
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.bodies import problems
from linkmgr.public import bio as bio_page
from linkmgr.schemas.bio import BIO_PAGES, THEMES, BioLink


class BioForm(StoredForm):
    list_template = "console/bios.html"
    template = "console/bio_form.html"
    after = PAGE
    used = "link"
    unique = ("alias",)
    example = (
        "A bio page shows all that you do under one URL: a name, a few words and your links. For "
        "example, /dana can be the only link in your profiles."
    )
    consequence = "Visitors of {shorturl} will see a page that says it does not exist. Its links remain."

    def page(self, row_id: int) -> str:
        row = self.read(g.user_id, row_id)
        return render_template("console/bio.html", form=self, row=row, preview=_preview)

    def check(self, members: Row) -> dict[str, str]:
        wrong = {number: problems(BioLink, link) for number, link in enumerate(members.get("links", ()))}
        g.wrong_links = {number: messages for number, messages in wrong.items() if messages}
        return {"links": "Correct the marked links, or remove them."} if g.wrong_links else {}

    def choices(self) -> Row:
        return {"themes": THEMES, "preview": _preview, "wrong_links": g.get("wrong_links", {})}

    def from_form(self, form: FormData) -> Row:
        record = super().from_form(form)
        links: list[Row] = record["links"]
        action = re.fullmatch(r"(up|down|remove)-([0-9]{1,3})", form.get(AGAIN, ""))
        if action and (place := int(action[2])) < len(links):
            row = links.pop(place)
            if action[1] != "remove":
                links.insert(max(0, place - 1) if action[1] == "up" else place + 1, row)
        return record


def _preview(record: Row) -> str:
    links = [link for link in record["links"] if not problems(BioLink, link)]
    texts = {"name": record["name"].strip() or "Your name", "alias": record["alias"] or "preview"}
    return bio_page.render(record | texts | {"links": links})


FORM = BioForm(BIO_PAGES)
FORM.add_urls("/bios", "/bios/new", "/bios/<id:row_id>/edit", "/bios/<id:row_id>/delete")
bp.add_url_rule("/bios/<id:row_id>", "bio", FORM.page)
