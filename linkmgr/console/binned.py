"""The bins: deleted links and QR codes, of which some or all are restored or deleted forever."""

from typing import Any, NamedTuple

from flask import flash, g, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from linkmgr.console import charts
from linkmgr.console.forms import PER_PAGE
from linkmgr.console.frame import bp
from linkmgr.console.link_changes import BATCH, MAX_BATCHES, selected_ids
from linkmgr.core.errors import AppError, refusal
from linkmgr.core.fields import qr as qr_data
from linkmgr.core.fields.query import page_number
from linkmgr.repository import link_bin, qr_bin


class Bin(NamedTuple):
    noun: str
    row: str  # the endpoint of the page of a row
    repository: Any  # the module with the statements


LINKS = Bin("link", "console.link", link_bin)
CODES = Bin("QR code", "console.qr", qr_bin)
_DONE = {"restore": "restored", "delete": "deleted forever"}


@bp.get("/links/bin")
def links_bin() -> str:
    return _show(LINKS, "console/bin.html")


@bp.post("/links/bin")
def links_bin_change() -> Response:
    return _change(LINKS, "console.links_bin")


@bp.get("/qrs/bin")
def qrs_bin() -> str:
    return _show(CODES, "console/qr_bin.html", content=qr_data.default_name)


@bp.post("/qrs/bin")
def qrs_bin_change() -> Response:
    return _change(CODES, "console.qrs_bin")


def _show(binned: Bin, template: str, **values: Any) -> str:
    page = binned.repository.index(g.user_id, limit=PER_PAGE, number=page_number(), after=None)
    return render_template(template, page=page, noun=binned.noun, days=link_bin.DAYS, **values)


def _change(binned: Bin, shown: str) -> Response:
    """Change the selected rows, or the last deleted ones, a bounded number of them."""
    ids, action = selected_ids(), request.form.get("action")
    if action not in _DONE:
        raise AppError("invalid", problems=f"action must be one of {', '.join(_DONE)}")
    store = binned.repository.restore_all if action == "restore" else binned.repository.delete
    chosen = binned.repository.newest(g.user_id, BATCH * MAX_BATCHES) if request.form.get("all") else ids
    batches = (chosen[start : start + BATCH] for start in range(0, len(chosen), BATCH))
    numbers: list[int] = []
    error = refusal(lambda: numbers.extend(store(g.user_id, some) for some in batches))
    if error:
        flash(error.message, "error")
    if number := sum(numbers):
        flash(f"{charts.count(number, binned.noun)} {_DONE[action]}.", "success")
    elif not error:
        missing = f"These {binned.noun}s are not in the bin any more."
        flash(missing if ids else f"Select {binned.noun}s first.", "error")
    if action == "restore" and number == 1 and len(ids) == 1:
        return redirect(url_for(binned.row, row_id=ids[0]), code=303)
    return redirect(url_for(shown), code=303)
