"""Bio pages: the list, the editor, and the page of one."""

import re

from flask import g, render_template

from linkmgr.api import bio as api
from linkmgr.db.statements import Row
from linkmgr.fields.base import problems
from linkmgr.pages import bio as bio_page
from linkmgr.pages.console import resources
from linkmgr.pages.console.forms import AGAIN, FormData, lines
from linkmgr.pages.console.frame import bp
from linkmgr.repository import bio
from linkmgr.settings import settings

LABELS = {"name": "Name", "alias": "Alias", "bio": "About", "theme": "Theme", "links": "Links"}


@bp.get("/bios/<id:row_id>")
def bio_row(row_id: int) -> str:
    row = bio.read(g.user_id, row_id)
    return render_template("console/bio.html", row=row, preview=_preview)


def _from_form(form: FormData) -> Row:
    links = [
        {"title": lines(title), "url": lines(url).strip()}
        for title, url in zip(form.getlist("links.title"), form.getlist("links.url"), strict=False)
    ]
    action = re.fullmatch(r"(up|down|remove)-([0-9]{1,3})", form.get(AGAIN, ""))
    if action and (place := int(action[2])) < len(links):
        row = links.pop(place)
        if action[1] != "remove":
            links.insert(max(0, place - 1) if action[1] == "up" else place + 1, row)
    return {
        **{name: lines(form.get(name, "")) for name in ("name", "alias", "bio")},
        "theme": form.get("theme", "light"),
        "links": [link for link in links if link["title"].strip() or link["url"]],
    }


def _preview(record: Row) -> str:
    """Return the page of what was typed, without the links that are not valid yet."""
    links = [link for link in record["links"] if not problems(api.BioLink, link)]
    texts = {"name": record["name"].strip() or "Your name", "alias": record["alias"] or "preview"}
    return bio_page.render(record | texts | {"links": links})


FORM = resources.resource(
    "bio", bio, api.NewBio, api.BioChanges,
    noun="bio page",
    from_form=_from_form,
    from_row=lambda row: {name: row[name] for name in LABELS},
    labels=LABELS,
    fields={"alias_taken": "alias"},
    choices=lambda: {"themes": api.THEMES, "preview": _preview, "base_url": settings().base_url},
    after="bio_row",
)  # fmt: skip
