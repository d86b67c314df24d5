"""The panel that tries a link, for a visitor that is described or like one of the latest visits."""

from flask import g, render_template, request
from flask.typing import ResponseReturnValue

from linkmgr.console import signed_in
from linkmgr.console.controls import lines, to_number
from linkmgr.console.frame import bp
from linkmgr.core.database.statements import Row
from linkmgr.core.fields import languages
from linkmgr.core.fields.bodies import load, problems
from linkmgr.schemas.tries import DescribedVisitor, try_link
from linkmgr.visits.counting import DIRECT
from linkmgr.visits.dimensions import UNKNOWN

FIELDS = {name: field.metadata for name, field in DescribedVisitor().fields.items()}
FIRST = ("country", "device", "language", "referrer")  # fields that are shown at first


@bp.route("/links/<id:row_id>/try", methods=("GET", "POST"))
def link_try(row_id: int) -> ResponseReturnValue:
    """Try the link for the visitor in the form, or in the URL that a visit links to."""
    typed = {name: lines(request.values.get(name, "")).strip() for name in FIELDS}
    body = typed | {"clicks": to_number(typed["clicks"]), "time": signed_in.from_control(typed["time"])}
    refused = problems(DescribedVisitor, body)
    page = render_template(
        "console/link_try.html",
        row_id=row_id,
        described=FIELDS,
        first=FIRST,
        typed=typed,
        problems={name: f"{FIELDS[name]['label']} {problem}." for name, problem in refused.items()},
        tried=None if refused else try_link(g.user_id, row_id, load(DescribedVisitor, body)),
    )
    return page, 400 if refused else 200


def of_visit(visit: Row) -> Row:
    """Return the fields that describe the visitor of a visit."""
    labels = {name: visit[name] for name in FIELDS if visit.get(name) not in (None, UNKNOWN, DIRECT)}
    code = languages.CODES.get(visit["language"].lower())
    return labels | {"language": code, "time": signed_in.to_control(visit["time"][:19])}
