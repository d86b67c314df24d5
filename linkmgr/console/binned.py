"""The bins: deleted links and QR codes, of which some or all are restored or deleted forever."""

from collections.abc import Callable
from typing import Any, NamedTuple

from flask import flash, g, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from linkmgr.console import charts
from linkmgr.console.forms import PER_PAGE
from linkmgr.console.frame import bp, flash_with_warnings
from linkmgr.console.link_changes import BATCH, MAX_BATCHES, selected_ids
from linkmgr.core.errors import AppError, refusal
from linkmgr.core.fields import qr as qr_data
from linkmgr.core.fields.query import page_number
from linkmgr.repository import link_bin, qr_bin
from linkmgr.schemas.links import Link, warn_lost_externalids


class Bin(NamedTuple):
    noun: str
    row: str  # the endpoint of the page of a row
    repository: Any  # the module with the statements
    restore: Callable[[int, list[int]], int]


def _restore_links(user_id: int, ids: list[int]) -> int:
    links = link_bin.restore_all(user_id, ids)
    warn_lost_externalids(links["lost"])
    return len(links["ids"])


LINKS = Bin("link", "console.link", link_bin, _restore_links)
CODES = Bin("QR code", "console.qr", qr_bin, qr_bin.restore_all)
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
    store = binned.restore if action == "restore" else binned.repository.delete
    chosen = binned.repository.newest(g.user_id, BATCH * MAX_BATCHES) if request.form.get("all") else ids
    batches = (chosen[start : start + BATCH] for start in range(0, len(chosen), BATCH))
    numbers: list[int] = []
    error = refusal(lambda: numbers.extend(store(g.user_id, some) for some in batches))
    if error:
        flash(error.message, "error")
    if number := sum(numbers):
        flash_with_warnings(f"{charts.count(number, binned.noun)} {_DONE[action]}.", Link.labels())
    elif not error:
        missing = f"These {binned.noun}s are not in the bin any more."
        flash(missing if ids else f"Select {binned.noun}s first.", "error")
    if action == "restore" and number == 1 and len(ids) == 1:
        return redirect(url_for(binned.row, row_id=ids[0]), code=303)
    return redirect(url_for(shown), code=303)
