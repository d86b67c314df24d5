from collections.abc import Generator, Iterator
from typing import Any

from flask import Blueprint, Response, request
from marshmallow import fields

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.query import PAGING, Parameter, paging
from linkmgr.core.web import csv as web_csv
from linkmgr.core.web import streams, uploads
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, listing, ok, versioned
from linkmgr.core.web.streams import BUSY
from linkmgr.features.imports import bodies, cells, links, requests
from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.features.imports import repository as imports
from linkmgr.features.imports.files import text
from linkmgr.features.imports.job import MAX_FAILING_HOURS, MAX_STAGED
from linkmgr.features.imports.requests import File, Service
from linkmgr.features.imports.service_api import DEADLINE

bp = Blueprint("imports", __name__, url_prefix="/api")

_PAGE = 100  # failed rows that are read at once; each has at most 128 KiB


_STATES = ("queued", "running", "paused", "done", "failed", "cancelled", "draft")
_PARTS = {"file": shapes.FILE["schema"]}  # the others are parameters too
_FORM: JsonSchema = {
    "schema": shapes.named("ImportFile", {"type": "object", "properties": _PARTS, "required": ["file"]})
}
_NO_URL = "url must be a URL that begins with http:// or https://."
_COLUMNS = shapes.array_of("Long URL") | {"examples": [["Short URL", "Long URL"]]}
_RECORDS = {
    "Import": shapes.object_of(
        id=shapes.ID,
        state=shapes.choice(*_STATES),
        source="shlink",
        name="links.csv",
        on_conflict=shapes.choice(*bodies.RULES),
        size=shapes.or_null(120_400),
        read=1200,
        made=1180,
        updated=0,
        skipped=15,
        failed=5,
        visits=0,
        seconds_left=shapes.or_null(12),
        percent=shapes.or_null(shapes.number(57) | {"maximum": 100}),
        message="",
        created=shapes.TIMESTAMP,
        started=shapes.or_null(shapes.TIMESTAMP),
        finished=shapes.or_null(shapes.TIMESTAMP),
    ),
    "ImportPreview": shapes.object_of(
        source=shapes.or_null("shlink"),
        format=shapes.choice("csv", "json", "jsonl", "sql", "zip", "service"),
        columns=_COLUMNS,
        mapping=shapes.map_of("Long URL", "url"),
        closing=shapes.array_of("visibility")
        | {
            "description": "Columns that no member takes, and whose values may close links: rows "
            "with such values fail unless the mapping has the column with `null`.",
            "examples": [["visibility"]],
        },
        ignored=shapes.array_of("visibility")
        | {"description": "Those that the mapping ignores.", "examples": [[]]},
        notes=shapes.array_of("These columns are ignored: uuid."),
        rows=shapes.array_of(shapes.ref("ImportRow")),
    ),
    "ImportRow": shapes.object_of(
        number=shapes.number(1, 1),
        link=shapes.map_of("https://example.com/sale", "url")
        | {"description": "Values that are no text are JSON."},
        channels=shapes.array_of("newsletter") | {"examples": [["newsletter"]]},
        created=shapes.or_null("2024-01-31 10:00:00"),
        clicks=shapes.or_null(1204),
        visits=0,
        problem=shapes.or_null("'Short code' must be 1 to 100 letters, digits, '_' or '-'.")
        | {"description": "Why the import would refuse the row, or null. Rows of an account are not tried."},
    ),
    "ImportError": shapes.object_of(
        number=shapes.number(17, 1),
        raw=shapes.map_of("https://example.com/sale", "Long URL"),
        code={"type": "string", "examples": ["import_inactive", "import_skipped", "alias_taken"]},
        message="Row 17 is deleted at the source. Leave the row out, or empty its column 'deleted'.",
    ),
}
_MIB = MAX_STAGED * imports.MAX_UNFINISHED >> 20
SECTION = Section("imports", "Imports", prose(__file__, text=text, mib=_MIB), lambda: _RECORDS)


def _parameter(field: fields.Field[Any]) -> Parameter:
    schema = shapes.json_of(field) | {"default": field.load_default, "examples": field.metadata["examples"]}
    return Parameter(field.metadata["description"], **schema)


_RULES = {name: _parameter(field) for name, field in bodies.ImportRules().fields.items()}
_BEGUN = shapes.success(
    "ImportBegun", message="Import has been queued.", id=shapes.ID, data=shapes.ref("ImportPreview")
) | {"required": ["error"]}


@bp.get("/imports")
@operation("imports:read", "imports.list", shapes.listing_schema("imports", "Import"), query=PAGING)
def index() -> Json:
    """List imports."""
    page = imports.index(user_id(), **paging())
    for record in page.rows:
        del record["version"]
    return listing("imports", page)


def _begin(origin: File | Service, rules: Row) -> Json:
    if rules["dry_run"] == "1":
        return ok(data=requests.preview(user_id(), origin, rules["on_conflict"]))
    return ok("Import has been queued.", id=requests.add(user_id(), origin, rules["on_conflict"]))


@bp.post("/imports")
@operation(
    "imports:create",
    "imports.create",
    _BEGUN,
    is_upload=True,
    media={"multipart/form-data": _FORM},
    query=_RULES,
    errors=(
        "address_too_long", "encoding_unsupported", "file_missing", "file_too_large", "form_too_large",
        "import_unrecognized", "import_unreadable", "imports_full", "upload_timeout", "uploads_busy",
    ),
    values={"requests": requests, "links": links, "stored": imports},
)  # fmt: skip
def add() -> Json:
    """Import a file.

    The response has the `id` of the import, or with `dry_run=1` only `data`: what was recognized
    and the first {requests.PREVIEW_ROWS} rows as they would be stored, among the first 64 KiB of a
    file, or of the table of links in an SQL dump. A user can have at most {stored.MAX_UNFINISHED}
    unfinished imports; of those that have ended, the newest {stored.MAX_KEPT:,} are kept. The
    parameters can also be fields of the form, and the file can be the whole body instead, with its
    own content type. A row has at most {links.MAX_CHANNELS} tags, which become channels.

    `on_conflict` is about the aliases of links. Other rows in the zip of an account are skipped if
    you have them already, and the imported links use yours, which are not changed: domains with the
    same URL, campaigns and channels with the same name, pixels, splash pages and overlays with the
    same members, QR codes with the same code, and bio pages with the same alias. If another user
    has the code of a QR code or the generated alias of a bio page, a new one is generated. A
    domain, the slug of a campaign or the custom alias of a bio page that is in use is a failure.
    Settings of conversions that you have set stay. The others are those of the zip.
    """
    is_form = request.mimetype == "multipart/form-data"
    rules = bodies.rules_of(request.args.to_dict() | (uploads.receive().members if is_form else {}))
    return _begin(bodies.recognize(uploads.receive(), rules), rules)


@bp.post("/imports/service")
@operation(
    "imports:create",
    "imports.createFromService",
    _BEGUN,
    body=bodies.ServiceToRead,
    query={name: _RULES[name] for name in ("on_conflict", "dry_run")},
    errors=("address_too_long", "fetch_busy", "fetches_limited", "import_unreadable", "imports_full"),
    values={"seconds": 2 * DEADLINE},
)
def add_service(sent: Row) -> Json:
    """Import the links of a service.

    They are read from its API. The response is that of `POST /api/imports`; a `dry_run` has the
    first page of the service, which has {seconds:.0f} seconds.
    """
    return _begin(bodies.service_of(sent), bodies.rules_of(request.args.to_dict()))


@bp.get("/imports/<id:import_id>")
@operation("imports:read", "imports.get", shapes.reading_schema("Import"), has_etag=True)
def read(import_id: int) -> Response:
    """Read the state of an import.

    A file or service is read first; then its rows are stored. `read` is the number of rows stored
    so far: the sum of `made`, `updated`, `skipped`, `failed` and those that have only visits, in
    the zip of an account also only a logo or an answer. `percent` is the part that is done; reading
    a file is the first half, but parts of a large one are read and stored in turn. `seconds_left`
    is an estimate while the import is running. `message` is the reason if it failed or is paused,
    or a note: for example, titles that were cut.
    """
    record = imports.read(user_id(), import_id)
    return versioned(record.pop("version"), data=record)


_LIST_ERRORS = operation(
    "imports:read",
    "imports.listErrors",
    shapes.all_of("ImportError"),
    errors=BUSY,
    values={"cells": cells, "import_rows": import_rows, "mib": import_rows.MAX_ERROR_BYTES >> 20},
)


@bp.get("/imports/<id:import_id>/errors")
@_LIST_ERRORS
def errors(import_id: int) -> Response:
    """Read the rows that failed or were skipped.

    The code of a skipped row is `import_skipped`. At most {import_rows.MAX_ERRORS:,} rows of an
    import that failed, {import_rows.MAX_SKIPPED:,} that were skipped, and {mib} MiB of all imports
    are kept, for {import_rows.ERROR_DAYS} days; those of the oldest imports are deleted first.

    After the import of an account, the columns are `file`, such as `links.jsonl`, and `line`, the
    JSON object of the row: for example, change its `alias` if it was in use. Ids in it, such as
    `campaign` and `pixels`, are those of your account. Visits of a link or QR code that failed are
    not imported; its `clicks` become `imported_clicks`.
    """
    imports.read(user_id(), import_id)
    if web_csv.is_preferred():
        return errors_csv(user_id(), import_id)
    return streams.streamed(_pages(user_id(), import_id))


@bp.get("/imports/<id:import_id>/errors.csv")
@_LIST_ERRORS.as_csv(f"Short URL,Long URL,error\r\nsale,ftp://example.com,{_NO_URL}\r\n")
def errors_as_csv(import_id: int) -> Response:
    """Read the rows that failed or were skipped as CSV.

    The CSV has the columns of the source and the reason. Correct the rows and send the file again;
    the column `error` is ignored. A password is `{cells.REMOVED}`: fill it in again. Members of
    objects in JSON are columns such as `meta.validUntil`. A row has at most {cells.MAX_TEXT:,}
    characters here: the long cells of others are cut, and end with `{cells.CUT}`.
    """
    imports.read(user_id(), import_id)
    return errors_csv(user_id(), import_id)


@bp.post("/imports/<id:import_id>/continue")
@operation(
    "imports:write",
    "imports.resume",
    shapes.done("Import has been continued."),
    errors=("import_not_paused",),
    values={"hours": MAX_FAILING_HOURS},
)
def resume(import_id: int) -> Json:
    """Continue an import.

    An import from a service that does not respond asks it again after increasing pauses, and then
    waits in the state `paused`; so does one whose service has asked to wait (status 429 or 503) for
    {hours} hours. This continues it where it stopped. After a week it is cancelled.
    """
    imports.read(user_id(), import_id)
    requests.resume(user_id(), import_id)
    return ok("Import has been continued.")


@bp.delete("/imports/<id:import_id>")
@operation("imports:write", "imports.delete", shapes.done("Import has been cancelled."), row="imports")
def delete(import_id: int) -> Json:
    """Cancel an import, or delete its record.

    An import that is queued, running or paused is cancelled; the links that it created remain. For
    one that has ended, the record and the failed rows are deleted.
    """
    cancelled = requests.delete(user_id(), import_id)
    return ok("Import has been cancelled." if cancelled else "Import has been deleted successfully.")


# --- failed rows


def _pages(owner: int, import_id: int) -> Iterator[list[Json]]:
    after = -1
    while rows := import_rows.errors(owner, import_id, after=after, limit=_PAGE):
        yield rows
        after = rows[-1]["number"]


def error_lines(owner: int, import_id: int) -> Generator[bytes]:
    """Yield the lines of a CSV with the columns of the source and the reason."""
    columns = [name for name in import_rows.error_columns(owner, import_id) if name != "error"]
    yield web_csv.lines([[*columns, "error"]])
    for rows in _pages(owner, import_id):
        yield web_csv.lines([*map(row["raw"].get, columns), row["message"]] for row in rows)


def errors_csv(owner: int, import_id: int) -> Response:
    """Stream the failed rows. The console uses this too."""
    return streams.download(error_lines(owner, import_id), web_csv.MIMETYPE, f"import-{import_id}-errors.csv")
