"""Conversions: their list, the page of one to correct it, and how shops report them."""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import charts, periods
from linkmgr.console.frame import Chip, blueprint, file_problem
from linkmgr.console.signed_in import in_zone, require_session, zoned
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError, refusal
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.query import page_number, query_id, query_text
from linkmgr.core.web import request as web_request
from linkmgr.core.web import streams, uploads
from linkmgr.features.conversions import amounts, pages, reports, schema
from linkmgr.features.conversions import repository as conversions
from linkmgr.repository import plans
from linkmgr.visits.dimensions import BY_NAME

bp = blueprint("conversion_pages", "/console")
PER_PAGE = 50
_SAVED = "Changes saved."
_LABELS = {"refund": "Refund", "value": "Value", "currency": "Currency", "page_value": "The largest value"}
# Why a row of an import is not stored
_REASONS = {
    "duplicate": "it is stored already",
    "no_visit": "there is no visit of your links with this click id, or of this visitor",
    "too_late": f"it is more than {conversions.DAYS} days after the visit",
    "too_many": "the click or your account has the most conversions that are possible",
    "no_link": "you have no link with this id",
}
# Columns of the file, those of the page first
_COLUMNS = ("date", "event", "order", "value", "currency", "problem", "link", "shorturl", "source", "id", "click",
            "updated", *BY_NAME)  # fmt: skip
_HEADINGS = {"date": "time", "shorturl": "short URL", "click": "visit", "updated": "changed"}


class _Deletion:
    """A conversion in the question before its delete, which is that of all rows."""

    noun, typed, can_duplicate = "conversion", "", False

    def title(self, row: Row) -> str:
        return f"{row['event']} {row['order']}".strip()

    def question(self, _row: Row) -> str:
        return "Statistics and experiments count without it from then on. This cannot be undone."

    def url(self, action: str, row: Row) -> str:
        return url_for(".conversion" if action == "page" else ".conversion_delete", row_id=row["id"])


_DELETION = _Deletion()


def _filters() -> Row:
    texts = {name: query_text(name) for name in ("event", "order", "currency", "source")}
    link = query_id("link")
    return dict.fromkeys(conversions.FILTERS) | texts | {"link": link and int(link)}


def _names_of_links(rows: list[Row], *ids: int) -> dict[int, Row]:
    """Return what names the links of conversions, and others, by their ids."""
    names = conversions.names_of_links(g.user_id, [*{*ids, *(row["link"] for row in rows)}])
    return {row_id: periods.named_row(str(row_id), name) for row_id, name in names.items()}


@bp.get("/conversions")
def conversions_page(problems: dict[str, str] | None = None) -> str:
    filters = _filters()
    page = conversions.index(g.user_id, filters=filters, limit=PER_PAGE, number=page_number(), after=None)
    chosen = {name: text for name, text in filters.items() if text}
    links = _names_of_links(page.rows, *filter(None, [filters["link"]]))
    shown = chosen | {name: links[row_id]["label"] for name, row_id in chosen.items() if name == "link"}
    return render_template(
        "console/conversions.html",
        page=page,
        links=links,
        chosen=chosen,
        chips=[
            Chip(f"{name.capitalize()}: {text}", url_for(".conversions_page", **(chosen | {name: None})))
            for name, text in shown.items()
        ],
        problems=problems or {},
        setup=conversions.setup(g.user_id),
        urls=pages.account_urls(g.user_id),
        rows=conversions,
    )


@bp.get("/conversions.csv")
def conversions_csv() -> ResponseReturnValue:
    """Send the rows of the list, of all its pages."""
    plans.require_exports(g.user_id)
    headings = {name: _HEADINGS.get(name, name) for name in _COLUMNS}
    headings |= {name: zoned(headings[name]) for name in conversions.TIMES}
    columns: dict[str, Callable[[Row], Any]] = {headings[name]: itemgetter(name) for name in _COLUMNS}
    return streams.export("conversions", columns, _exported(_filters()), "csv")


def _exported(filters: Row) -> Iterator[list[Row]]:
    for batch in conversions.matching(g.user_id, filters):
        links = _names_of_links(batch)
        for row in batch:
            row |= {name: in_zone(row[name]) for name in conversions.TIMES}
            row["shorturl"] = links[row["link"]].get("link", {}).get("shorturl", "")
        yield [dict.fromkeys(BY_NAME, "") | row["labels"] | row for row in batch]


@bp.get("/conversions/<id:row_id>")
def conversion(row_id: int, problems: dict[str, str] | None = None) -> str:
    row = conversions.read(g.user_id, row_id)
    return render_template(
        "console/conversion.html",
        row=row,
        link=_names_of_links([row])[row["link"]],
        labels={_label(name): row["labels"][name] for name in BY_NAME if name in row["labels"]},
        currencies=sorted(amounts.CURRENCIES),
        problems=problems or {},
        form=_DELETION,
    )


def _label(name: str) -> str:
    """Return the name of a dimension of one visit."""
    noun = "system" if name == "os" else BY_NAME[name].noun or name
    return noun[0].upper() + noun[1:]


def _back(sentence: str, level: str = "success", row_id: int | None = None) -> ResponseReturnValue:
    flash(sentence, level)
    page = url_for(".conversion", row_id=row_id) if row_id else url_for(".conversions_page")
    return redirect(page, code=303)


def _amount(name: str, currency: str = "") -> tuple[str | None, str]:
    """Return the amount of a control as people write it, and its currency."""
    value, currency, problem = amounts.read(request.form.get(name, "").strip(), currency)
    if problem == "too_large":
        raise invalid(f"{name} must be at most {conversions.MAX_VALUE:,}")
    if problem:
        raise invalid(f"{name} must be an amount such as 29.90")
    return value, currency


def _problems(change: Callable[[], Any]) -> dict[str, str]:
    """Return the sentence of the control for which nothing was changed, by its name."""
    error = refusal(change, "invalid", "refund_too_large")
    if error is None:
        return {}
    problem = error.problems(_LABELS)[0]
    name = problem["field"]
    return {name: _LABELS[name] + problem["message"].removeprefix(name)}


def _change(row_id: int) -> None:
    form, stored = request.form.get("currency", "").strip(), conversions.read(g.user_id, row_id)["currency"]
    (value, currency), (refund, _) = _amount("value", form), _amount("refund", stored)
    sent = {"value": value, "refund": refund, "currency": None if refund else currency or form or None}
    conversions.update(g.user_id, row_id, **load(schema.ConversionUpdate, sent))


@bp.post("/conversions/<id:row_id>")
def conversion_change(row_id: int) -> ResponseReturnValue:
    if problems := _problems(lambda: _change(row_id)):
        return conversion(row_id, problems), 400
    return _back(_SAVED, row_id=row_id)


@bp.route("/conversions/<id:row_id>/delete", methods=("GET", "POST"))
def conversion_delete(row_id: int) -> ResponseReturnValue:
    if request.method == "GET":  # by browsers that do not open the dialog
        row = conversions.read(g.user_id, row_id)
        return render_template("console/delete.html", form=_DELETION, row=row)
    conversions.delete(g.user_id, row_id)
    return _back("Conversion deleted.")


def _change_setup() -> None:
    page_value = _amount("page_value")[0] or "0"
    conversions.change_setup(g.user_id, clickid="clickid" in request.form, page_value=page_value)


@bp.post("/conversions/setup")
def conversions_setup() -> ResponseReturnValue:
    if problems := _problems(_change_setup):
        return conversions_page(problems), 400
    return _back(_SAVED)


@bp.post("/conversions/import")
def conversions_import() -> ResponseReturnValue:
    try:
        upload = uploads.receive()
        if response := require_session():  # it may have ended while the file arrived
            return response
        counted, failed = reports.of_file(g.user_id, upload)
    except AppError as error:
        return _back(file_problem(error), "error")
    for outcome in failed[:3]:
        reason = outcome.get("message") or f"{_REASONS[outcome['result']]}."
        flash(f"Line {outcome['line']}: {reason}", "error")
    for warning in web_request.current().warnings:
        flash(warning.replace("The member", "The column", 1), "warning")
    others = f", {len(failed):,} not" if failed else ""
    return _back(f"{charts.count(counted, 'conversion')} imported{others}.")
