"""The bin: deleted links, of which some or all are restored or deleted forever."""

from flask import flash, g, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from linkmgr.console import charts
from linkmgr.console.forms import PER_PAGE
from linkmgr.console.frame import bp
from linkmgr.console.link_changes import BATCH, MAX_BATCHES, selected_ids
from linkmgr.core.errors import AppError, refusal
from linkmgr.core.fields.query import page_number
from linkmgr.repository import link_bin

_CHANGES = {"restore": ("restored", link_bin.restore_all), "delete": ("deleted forever", link_bin.delete)}


@bp.get("/links/bin")
def links_bin() -> str:
    page = link_bin.index(g.user_id, limit=PER_PAGE, number=page_number(), after=None)
    return render_template("console/bin.html", page=page, days=link_bin.DAYS)


@bp.post("/links/bin")
def links_bin_change() -> Response:
    """Change the selected links, or the last deleted ones, a bounded number of them."""
    ids, action = selected_ids(), request.form.get("action")
    if action not in _CHANGES:
        raise AppError("invalid", problems=f"action must be one of {', '.join(_CHANGES)}")
    done, store = _CHANGES[action]
    chosen = link_bin.newest(g.user_id, BATCH * MAX_BATCHES) if request.form.get("all") else ids
    batches = (chosen[start : start + BATCH] for start in range(0, len(chosen), BATCH))
    numbers: list[int] = []
    error = refusal(lambda: numbers.extend(store(g.user_id, some) for some in batches))
    if error:
        flash(error.message, "error")
    if number := sum(numbers):
        flash(f"{charts.count(number, 'link')} {done}.", "success")
    elif not error:
        flash("Select links first." if not ids else "These links are not in the bin any more.", "error")
    if action == "restore" and number == 1 and len(ids) == 1:
        return redirect(url_for("console.link", row_id=ids[0]), code=303)
    return redirect(url_for("console.links_bin"), code=303)
