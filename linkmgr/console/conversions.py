"""Conversions: their list, the page of one to correct it, and how shops report them."""

from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import charts
from linkmgr.console.frame import Chip, blueprint
from linkmgr.console.signed_in import require_session
from linkmgr.core.errors import AppError, refusal
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.query import page_number, query_id, query_text
from linkmgr.core.web import uploads
from linkmgr.features.conversions import amounts, handlers, pages, reports, schema
from linkmgr.features.conversions import repository as conversions

bp = blueprint("conversion_pages", "/console")
PER_PAGE = 50


@bp.get("/conversions")
def conversions_page() -> str:
    texts = {name: query_text(name) for name in ("event", "order", "currency", "source")}
    link = query_id("link")
    filters = dict.fromkeys(conversions.FILTERS) | texts | {"link": link and int(link)}
    page = conversions.index(g.user_id, filters=filters, limit=PER_PAGE, number=page_number(), after=None)
    chosen = {name: text for name, text in filters.items() if text}
    return render_template(
        "console/conversions.html",
        page=page,
        chosen=chosen,
        chips=[
            Chip(f"{name.capitalize()}: {text}", url_for(".conversions_page", **(chosen | {name: None})))
            for name, text in chosen.items()
        ],
        setup=conversions.setup(g.user_id),
        urls=pages.account_urls(g.user_id),
        rows=conversions,
    )


@bp.get("/conversions.csv")
def conversions_csv() -> ResponseReturnValue:
    return handlers.download(g.user_id, form="csv")


@bp.get("/conversions/<id:row_id>")
def conversion(row_id: int, problem: str = "") -> str:
    return render_template(
        "console/conversion.html", row=conversions.read(g.user_id, row_id), problem=problem
    )


def _back(sentence: str, level: str = "success", row_id: int | None = None) -> ResponseReturnValue:
    flash(sentence, level)
    page = url_for(".conversion", row_id=row_id) if row_id else url_for(".conversions_page")
    return redirect(page, code=303)


def _amount(name: str, currency: str = "") -> tuple[str | None, str]:
    """Return the amount of a control as people write it, and its currency."""
    value, currency, problem = amounts.read(request.form.get(name, "").strip(), currency)
    if problem:
        raise invalid(f"{name} must be an amount such as 29.90")
    return value, currency


def _change(row_id: int) -> None:
    form, stored = request.form.get("currency", "").strip(), conversions.read(g.user_id, row_id)["currency"]
    (value, currency), (refund, _) = _amount("value", form), _amount("refund", stored)
    sent = {"value": value, "refund": refund, "currency": None if refund else currency or form or None}
    conversions.update(g.user_id, row_id, **load(schema.ConversionUpdate, sent))


@bp.post("/conversions/<id:row_id>")
def conversion_change(row_id: int) -> ResponseReturnValue:
    if error := refusal(lambda: _change(row_id), "invalid", "refund_too_large"):
        return conversion(row_id, error.message), 400
    return _back("Conversion changed.", row_id=row_id)


@bp.post("/conversions/<id:row_id>/delete")
def conversion_delete(row_id: int) -> ResponseReturnValue:
    conversions.delete(g.user_id, row_id)
    return _back("Conversion deleted.")


@bp.post("/conversions/setup")
def conversions_setup() -> ResponseReturnValue:
    clickid = "clickid" in request.form
    try:
        conversions.change_setup(g.user_id, clickid=clickid, page_value=_amount("page_value")[0] or "0")
    except AppError as error:
        return _back(error.message, "error")
    return _back("Settings saved.")


@bp.post("/conversions/import")
def conversions_import() -> ResponseReturnValue:
    try:
        upload = uploads.receive()
        if response := require_session():  # it may have ended while the file arrived
            return response
        counted, failed = reports.of_file(g.user_id, upload)
    except AppError as error:
        return _back(error.message, "error")
    for outcome in failed[:3]:
        flash(
            f"Line {outcome['line']}: {outcome.get('message') or outcome['result'].replace('_', ' ')}.",
            "error",
        )
    others = f", {len(failed):,} not" if failed else ""
    return _back(f"{charts.count(counted, 'conversion')} imported{others}.")
