from collections.abc import Callable
from operator import itemgetter
from typing import Any

from flask import Blueprint, Response

from linkmgr.core.database.statements import Row, timestamp
from linkmgr.core.database.tables import in_batches
from linkmgr.core.errors import AppError
from linkmgr.core.fields import shapes
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.query import (
    ID,
    PAGING,
    Parameter,
    paging,
    query_position,
    query_text,
    row_id,
    values_of,
)
from linkmgr.core.fields.zones import TIME, parse_time
from linkmgr.core.web import csv as web_csv
from linkmgr.core.web import streams, uploads
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, listing, ok, updated, versioned, with_record
from linkmgr.core.web.streams import BUSY
from linkmgr.features.conversions import experiments, pages, reports, results, schema
from linkmgr.features.conversions import repository as conversions
from linkmgr.repository import link_records, plans
from linkmgr.visits.dimensions import BY_NAME

bp = Blueprint("conversions", __name__, url_prefix="/api")

_RECORDS: dict[str, JsonSchema] = {
    "Conversion": schema.RECORD,
    "ConversionSetup": shapes.object_of(
        clickid=True,
        page_value=schema.AMOUNT,
        image=shapes.own_url("c/u17.signature.gif"),
        script=shapes.own_url("c/u17.signature.js"),
    ),
    "ConversionExported": shapes.object_of(
        **{name: shape for name, shape in schema.RECORD["properties"].items() if name != "labels"},
        **schema.RECORD["properties"]["labels"]["properties"],
    ),
    **results.RECORDS,
}
SECTION = Section(
    "conversions",
    "Conversions",
    prose(__file__, rows=conversions, rate=pages.RATE, sent=schema.MAX_REPORTS, test=experiments),
    lambda: _RECORDS,
)
_RESULT = shapes.object_of(
    counted=True,
    result=shapes.choice(*reports.RESULTS),
    id=shapes.or_null(shapes.ID) | {"description": "That of the conversion, if it was counted."},
)
_FILTERS = {
    "link": Parameter("Those of a link.", row_id, **ID),
    "event": Parameter("Those of an event.", examples=["sale"]),
    "order": Parameter("Those of an order."),
    "currency": Parameter("Those in a currency.", pattern="^[A-Z]{3}$", examples=["EUR"]),
    "source": Parameter("Those of keys or of pages.", enum=[*conversions.SOURCES]),
    "from": Parameter("Not earlier than this time.", parse_time, pattern=TIME, examples=["2026-11-01"]),
    "to": Parameter("Earlier than this time.", parse_time, pattern=TIME, examples=["2026-12-01"]),
}
_BOTH = ("own_only", "domains")
COLUMNS = [*(name for name in schema.RECORD["properties"] if name != "labels"), *BY_NAME]
_CHANGED, _SET = "Conversion has been updated successfully.", "Settings have been updated successfully."


@bp.post("/conversions")
@operation(
    "conversions:create",
    "conversions.create",
    shapes.success("ConversionReported", message="Conversion has been received.", **_RESULT["properties"]),
    body=schema.Report,
    example={"click": schema.EXAMPLE_CLICK, "event": "sale", "order": "A-1042", "value": 29.9},
    errors=("link_unknown",),
    restricted=_BOTH,
)
def add(new: Row) -> Json:
    """Report a conversion.

    The `result` says what happened: `counted`, or why nothing was stored.
    """
    [outcome] = reports.store(user_id(), [new])
    if outcome["result"] == reports.NO_LINK:
        raise AppError("link_unknown")
    return ok("Conversion has been received.", **outcome)


@bp.post("/conversions/batch")
@operation(
    "conversions:create",
    "conversions.createBatch",
    shapes.success("ConversionsReported", counted=1, results=shapes.array_of(_RESULT)),
    body=schema.Reports,
    values={"sent": schema.MAX_REPORTS},
    errors=("bulk_too_large",),
    limit=(2 << 20, "bulk_too_large"),
    restricted=_BOTH,
)
def add_many(new: Row) -> Json:
    """Report up to {sent} conversions.

    `results` has the result of each, in their order. One that is invalid is a 400, and then nothing
    is stored.
    """
    outcomes = reports.store(user_id(), new["conversions"])
    return ok(counted=sum(outcome["counted"] for outcome in outcomes), results=outcomes)


@bp.post("/conversions/import")
@operation(
    "conversions:create",
    "conversions.import",
    shapes.success(
        "ConversionsImported",
        counted=2,
        failed=shapes.array_of(
            shapes.object_of(line=3, result=shapes.choice(*reports.RESULTS[1:], reports.INVALID), message="")
            | {"required": ["line", "result"]}
        ),
    ),
    errors=(
        "file_missing",
        "file_too_large",
        "bulk_too_large",
        "form_too_large",
        "upload_timeout",
        *BUSY,
        "import_unreadable",
    ),
    is_upload=True,
    media={"text/csv": shapes.FILE},
    values={"rows": reports.MAX_ROWS, "mebibytes": reports.MAX_BYTES >> 20},
)
def import_file() -> Json:
    """Import conversions from a CSV.

    The first line has the names of members of `POST /api/conversions`, such as `click`, `event`,
    `order`, `value`, `currency` and `at`. Commas, semicolons or tabs separate them. Amounts may be
    written as people write them. `failed` has the first 1000 rows that were not counted, and why. A
    file has at most {rows:,} rows and {mebibytes} MiB.
    """
    counted, failed = reports.of_file(user_id(), uploads.receive())
    return ok(counted=counted, failed=failed[: schema.MAX_REPORTS])


@bp.get("/conversions")
@operation(
    "conversions:read",
    "conversions.list",
    shapes.listing_schema("conversions", "Conversion"),
    query=_FILTERS | PAGING,
)
def index() -> Json:
    """List conversions.

    The last stored first. Imported ones may be older than those that follow.
    """
    return listing("conversions", conversions.index(user_id(), filters=values_of(_FILTERS), **paging()))


_EXPORT = operation(
    "conversions:read",
    "conversions.export",
    shapes.all_of("ConversionExported", "ConversionExport"),
    errors=(*BUSY, "plan_feature"),
    query={
        "format": streams.FORMAT,
        "after": Parameter(
            "Only rows behind this id: the last one of an interrupted export.", **shapes.CURSOR
        ),
    },
)


@bp.get("/conversions/export")
@_EXPORT
def export() -> Response:
    """Export conversions.

    With the labels of their visits, the first stored first. Those of links in the bin are left
    out, as their links are in exports, until the links are restored.
    """
    return _download()


@bp.get("/conversions/export.csv")
@_EXPORT.as_csv(web_csv.lines([COLUMNS]).decode())
def export_csv() -> Response:
    """Export conversions as CSV.

    With the labels of their visits, the first stored first. Those of links in the bin are left
    out, as their links are in exports, until the links are restored.
    """
    return _download("csv")


def _download(form: str | None = None) -> Response:
    owner, after = user_id(), query_position("after")
    plans.require_exports(owner)
    columns: dict[str, Callable[[Row], Any]] = {name: itemgetter(name) for name in COLUMNS}
    batches = (list(map(_flat, batch)) for batch in in_batches(conversions.batch, owner, after))
    return streams.export("conversions", columns, batches, form)


def _flat(record: Row) -> Row:
    times = {name: timestamp(record[name]) for name in conversions.TIMES}
    row = dict.fromkeys(BY_NAME, "") | record.pop("labels") | record | times
    return {name: row[name] for name in COLUMNS}


@bp.get("/conversion/<id:conversion_id>")
@operation("conversions:read", "conversions.read", shapes.reading_schema("Conversion"), has_etag=True)
def read(conversion_id: int) -> Response:
    """Read a conversion."""
    record = conversions.read(user_id(), conversion_id)
    return versioned(record.pop("version"), data=record)


@bp.put("/conversion/<id:conversion_id>/update")
@operation(
    "conversions:write",
    "conversions.update",
    shapes.changed_schema(_CHANGED, "Conversion"),
    body=schema.ConversionUpdate,
    example={"refund": 10},
    errors=("refund_too_large",),
    row="conversions",
    has_etag=True,
)
def update(sent: Row, conversion_id: int) -> Response:
    """Change the value of a conversion.

    `refund` subtracts a part of it, or all. It is the same for a shop that sends it twice only with
    an `Idempotency-Key`.
    """
    record = conversions.update(user_id(), conversion_id, **sent)
    return updated(_CHANGED, record.pop("version"), data=record)


@bp.delete("/conversion/<id:conversion_id>/delete")
@operation(
    "conversions:write",
    "conversions.delete",
    shapes.done("Conversion has been deleted successfully."),
    row="conversions",
)
def delete(conversion_id: int) -> Json:
    """Delete a conversion."""
    conversions.delete(user_id(), conversion_id)
    return ok("Conversion has been deleted successfully.")


@bp.get("/conversions/setup")
@operation("conversions:read", "conversions.getSetup", shapes.reading_schema("ConversionSetup"))
def read_setup() -> Json:
    """Read how conversions are counted.

    And the URLs of the script and the image of the account, for its shops.
    """
    setup = conversions.setup(user_id()) | pages.account_urls(user_id())
    return ok() | with_record({"data": setup})


@bp.put("/conversions/setup")
@operation(
    "conversions:write",
    "conversions.updateSetup",
    shapes.changed_schema(_SET, "ConversionSetup"),
    body=schema.Setup,
    row="users",
)
def update_setup(sent: Row) -> Json:
    """Change how conversions are counted."""
    setup = conversions.change_setup(user_id(), **sent) | pages.account_urls(user_id())
    return ok(_SET) | with_record({"data": setup})


@bp.get("/url/<id:link_id>/conversions")
@operation(
    "links:read",
    "conversions.get",
    shapes.success("LinkConversionsRead", data=results.LINK),
    query={"event": Parameter("Only those of an event.", examples=["sale"])},
    restricted=_BOTH,
)
def read_link(link_id: int) -> Json:
    """Read the conversions of a link and its experiments.

    All since the link was created.
    """
    event = query_text("event")
    return ok(data=results.of_link(link_records.read_named(user_id(), link_id, event), event))
