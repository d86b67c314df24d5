from collections.abc import Iterator

from flask import Response, g, render_template

from linkmgr.console.forms import BOTH
from linkmgr.console.frame import bp
from linkmgr.console.signed_in import in_zone, zoned
from linkmgr.console.stored_forms import StoredForm
from linkmgr.core.database.statements import Row
from linkmgr.core.database.tables import BATCH
from linkmgr.core.fields.query import page_number
from linkmgr.core.web import streams
from linkmgr.features.exports import handlers as export
from linkmgr.repository import overlay, plans
from linkmgr.schemas.overlay import OVERLAYS, answer_columns

PER_PAGE = 50  # answers


class OverlayForm(StoredForm):
    list_template = "console/overlays.html"
    template = "console/overlay_form.html"
    noun = "overlay"
    used = "link"
    example = (
        "An overlay appears above the target of a link. For example, it shows a coupon, asks a "
        "question, or collects e-mail addresses for a newsletter."
    )
    consequence = "Links that show it redirect directly from then on, and its answers are deleted."
    preview = "overlay"

    def values_of_new(self) -> Row:
        return super().values_of_new() | {"type": "message"}

    def changes(self, record: Row, stored: Row) -> Row:
        changes, together = (
            super().changes(record, stored),
            {name: record[name] for name in ("type", "message")},
        )
        return changes | together if changes.keys() & together.keys() else changes


FORM = OverlayForm(OVERLAYS)
FORM.add_urls("/overlays", "/overlays/new", "/overlays/<id:row_id>/edit", "/overlays/<id:row_id>/delete")
bp.add_url_rule("/overlays/<id:row_id>/preview", "overlay_preview", FORM.preview_page)
bp.add_url_rule("/overlays/preview", "overlay_preview_typed", FORM.preview_page, methods=BOTH)


@bp.get("/overlays/<id:row_id>/answers")
def overlay_answers(row_id: int) -> str:
    row = overlay.read(g.user_id, row_id)
    page = overlay.answers(g.user_id, row_id, limit=PER_PAGE, number=page_number(), after=None)
    columns = answer_columns([answer["answer"] for answer in page.rows])
    return render_template("console/overlay_answers.html", row=row, page=page, columns=columns)


@bp.get("/overlays/<id:row_id>/answers.csv")
def overlay_answers_csv(row_id: int) -> Response:
    plans.require_exports(g.user_id)
    names = {name: "" for batch in _answers(row_id) for row in batch for name in row}
    columns: export.Columns = {zoned("time"): lambda row: in_zone(row["date"])}
    columns |= {name: lambda row, name=name: row.get(name) for name in answer_columns([names])}  # type: ignore[misc]
    return streams.export(f"answers-{row_id}", columns, _answers(row_id), "csv")


def _answers(row_id: int) -> Iterator[list[Row]]:
    """Read all answers, the newest first."""
    page = overlay.answers(g.user_id, row_id, limit=BATCH, number=1, after=None)
    while page.rows:
        yield [row["answer"] | {"date": row["date"]} for row in page.rows]
        page = overlay.answers(g.user_id, row_id, limit=BATCH, number=1, after=page.rows[-1]["id"])
