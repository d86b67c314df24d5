"""Import and export."""

from datetime import UTC, datetime, timedelta
from typing import Any

from flask import flash, g, redirect, render_template, request, url_for
from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Response

from linkmgr.console import charts, roles
from linkmgr.console.frame import blueprint, file_problem
from linkmgr.console.signed_in import require_session
from linkmgr.core import errors
from linkmgr.core.database.tables import in_batches
from linkmgr.core.errors import AppError
from linkmgr.core.fields.query import page_number
from linkmgr.core.web import streams, uploads
from linkmgr.features.exports import account
from linkmgr.features.exports.handlers import OF_LINKS
from linkmgr.features.imports import bodies, repository, requests, services
from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.features.imports import handlers as api
from linkmgr.features.imports.account import reading
from linkmgr.features.imports.rows import MEMBERS
from linkmgr.repository import plans
from linkmgr.repository.link_bin import DAYS
from linkmgr.schemas.links import LINKS
from linkmgr.schemas.qr import QR_CODES

bp = blueprint("transfer", "/console")

_WORDS = [stored.words for stored in (LINKS, QR_CODES, *account.RESOURCES.values())]
_NOUNS = {words.file_name: words.noun for words in _WORDS}  # by file of an exported account
PER_PAGE, _FAILURES = 15, 20  # rows of the list, and failed rows of an import


def _require_owner(source: str) -> None:
    """Refuse an exported account to editors: it has domains."""
    if source == reading.SOURCE:
        roles.require(g.role, "/console/domains", change=True)


@bp.get("/imports")
def imports() -> str:
    page = repository.index(g.user_id, limit=PER_PAGE, number=page_number(), after=None)
    return render_template("console/imports.html", page=page, services=services.SERVICES, rules=bodies.RULES)


@bp.post("/imports/new")
def import_add() -> Response:
    try:
        if request.mimetype == "multipart/form-data":
            upload = uploads.receive()
            if response := require_session():  # it may have ended while the file arrived
                return response
            file = bodies.recognize(upload, bodies.rules_of({}))
            _require_owner(file.source)
            import_id = requests.add(g.user_id, file, on_conflict=None)
        else:
            form = request.form.to_dict()
            import_id = requests.add(g.user_id, bodies.service(form), bodies.rules_of(form)["on_conflict"])
    except AppError as error:
        flash(file_problem(error), "error")
        return redirect(url_for("transfer.imports"), code=303)
    return redirect(url_for("transfer.import_page", row_id=import_id), code=303)


@bp.get("/imports/<id:row_id>")
def import_page(row_id: int) -> str:
    row = repository.read(g.user_id, row_id)
    if row["state"] == "draft":
        mapping = _mapping(request.args)
        preview = requests.preview(g.user_id, requests.draft(g.user_id, row_id, mapping))
        return render_template("console/import_draft.html", row=row, preview=preview, rules=bodies.RULES)
    has_errors = row["failed"] + row["skipped"] > 0
    failed = import_rows.errors(g.user_id, row_id, after=-1, limit=_FAILURES) if has_errors else []
    details = repository.details(g.user_id, row_id) if row["source"] == reading.SOURCE else None
    numbers = details["made_of"] if details else {}
    made = [charts.count(numbers[file], noun) for file, noun in _NOUNS.items() if file in numbers]
    since = f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d %H:%M:%S}"
    can_undo = row["made"] and row["finished"] and row["finished"] > since
    return render_template(
        "console/import.html", row=row, failed=failed, made=", ".join(made), can_undo=can_undo, days=DAYS
    )


def _mapping(sent: MultiDict[str, str]) -> requests.Mapping:
    """Return the columns of members, and None for those columns that the user ignores."""
    named: requests.Mapping = {name: column for name, column in sent.items() if name in MEMBERS}
    return named | dict.fromkeys(sent.getlist("ignored"))


@bp.post("/imports/<id:row_id>")
def import_begin(row_id: int) -> Response:
    mapping = _mapping(request.form)
    _require_owner(repository.read(g.user_id, row_id)["source"])
    try:
        rules = bodies.rules_of(request.form.to_dict())
        requests.begin(g.user_id, row_id, on_conflict=rules["on_conflict"], mapping=mapping)
    except AppError as error:
        if repository.read(g.user_id, row_id)["state"] == "draft":  # otherwise another request has begun it
            if error.code != "imports_full":
                raise
            flash(error.message, "error")
            query: dict[str, Any] = {name: column for name, column in mapping.items() if column is not None}
            query["ignored"] = [name for name, column in mapping.items() if column is None]
            return redirect(url_for("transfer.import_page", row_id=row_id, **query), code=303)
    return redirect(url_for("transfer.import_page", row_id=row_id), code=303)


@bp.post("/imports/<id:row_id>/continue")
def import_continue(row_id: int) -> Response:
    repository.read(g.user_id, row_id)
    if error := errors.refusal(lambda: requests.resume(g.user_id, row_id)):
        flash(error.message, "error")
    return redirect(url_for("transfer.import_page", row_id=row_id), code=303)


@bp.post("/imports/<id:row_id>/undo")
def import_undo(row_id: int) -> Response:
    repository.read(g.user_id, row_id)
    if repository.undo(g.user_id, row_id):
        flash("The links that have not changed since are being deleted. The bin has them.", "success")
    else:
        flash("Only an import that ended in the last 24 hours can be undone.", "error")
    return redirect(url_for("transfer.import_page", row_id=row_id), code=303)


@bp.get("/imports/<id:row_id>/errors")
def import_errors(row_id: int) -> Response:
    repository.read(g.user_id, row_id)
    return api.errors_csv(g.user_id, row_id)


@bp.post("/imports/<id:row_id>/delete")
def import_delete(row_id: int) -> Response:
    cancelled = requests.delete(g.user_id, row_id)
    flash(f"Import {'cancelled' if cancelled else 'deleted'}. The links that it created remain.", "success")
    return redirect(url_for("transfer.imports"), code=303)


@bp.get("/export/links.csv")
def export_links() -> Response:
    plans.require_exports(g.user_id)
    batches = in_batches(LINKS.exported, g.user_id)
    return streams.export(f"links-{datetime.now(g.zone):%Y-%m-%d}", OF_LINKS.columns, batches, "csv")


@bp.get("/export/account.zip")
def export_everything() -> Response:
    plans.require_exports(g.user_id)
    chunks = streams.zipped(account.files(g.user_id))
    name = f"linkmgr-account-{datetime.now(g.zone):%Y-%m-%d}.zip"
    return streams.download(chunks, "application/zip", name)
