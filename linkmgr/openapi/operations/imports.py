"""/api/imports"""

from typing import Any

from marshmallow import fields

from linkmgr.api import imports
from linkmgr.fields.query import Parameter
from linkmgr.imports import requests
from linkmgr.imports.cells import CUT, MAX_TEXT, REMOVED
from linkmgr.imports.files.text import MAX_COLUMNS
from linkmgr.imports.job import MAX_FAILING_HOURS
from linkmgr.imports.links import MAX_CHANNELS
from linkmgr.openapi.bodies import json_of
from linkmgr.openapi.model import PAGING, Operation, Section
from linkmgr.openapi.schemas import (
    ID,
    TIMESTAMP,
    JsonSchema,
    array_of,
    choice,
    done,
    listing,
    map_of,
    number,
    or_null,
    reading,
    record,
    ref,
    success,
)
from linkmgr.outbound.service_api import DEADLINE
from linkmgr.repository.import_rows import ERROR_DAYS, MAX_ERROR_BYTES, MAX_ERRORS
from linkmgr.repository.imports import MAX_KEPT, MAX_UNFINISHED

_STATES = ("queued", "running", "paused", "done", "failed", "cancelled", "draft")
_FILE: JsonSchema = {"schema": {"type": "string", "format": "binary"}}
_RULES = imports.ImportRules().fields
_FORM: JsonSchema = {
    "schema": {
        "type": "object",
        "properties": {"file": _FILE["schema"]},  # the others are parameters too
        "required": ["file"],
    }
}
_COLUMNS = array_of("Long URL") | {"examples": [["Short URL", "Long URL"]]}


def _parameter(field: fields.Field[Any]) -> Parameter:
    schema = json_of(field) | {"default": field.load_default, "examples": field.metadata["examples"]}
    return Parameter(field.metadata["description"], **schema)


SECTION = Section(
    name="Imports",
    description=f"""\
Imports links from a file or from another service. Send a file as the body or as `file` of a form
(`multipart/form-data`), optionally packed with gzip, up to 64 MiB: CSV, a JSON array, JSON lines, an SQL dump of
YOURLS, the zip of an account, or the corrected CSV of the rows that failed:

`curl -H 'Authorization: Bearer API_KEY' -F file=@links.csv 'https://go.example.org/api/imports?dry_run=1'`

Send the members below as a JSON object to read the links from the API of a service.

An import keeps the alias, the target, the title, tags as channels, the date of creation, the expiry, and the password
if the source has it. Visits that the source recorded become visits, unless they are older than ten years; they count
against the clicks that your plan allows this month. Visits in an SQL dump of YOURLS have IP addresses, which identify
visitors and are not stored. Visits in the zip of an account keep their visitors. Other imported visits are clicks, but
not unique clicks. An unknown country, device or language becomes `Unknown`, and an unknown bot `Other bot`. Other
clicks of the source are `imported_clicks` of the link, which no statistics include. An update from an export of this
service leaves them. A link keeps its domain if this is one of your branded domains; otherwise it moves to this service.

A CSV has at most {MAX_COLUMNS} columns. An import runs in the background, as long as the service is running. Rows that
fail do not stop it.""",
    records={
        "Import": record(
            id=ID,
            state=choice(*_STATES),
            source="shlink",
            name="links.csv",
            on_conflict=choice(*imports.RULES),
            size=or_null(120_400),
            read=1200,
            made=1180,
            updated=0,
            skipped=15,
            failed=5,
            visits=0,
            seconds_left=or_null(12),
            percent=or_null(number(57) | {"maximum": 100}),
            message="",
            created=TIMESTAMP,
            started=or_null(TIMESTAMP),
            finished=or_null(TIMESTAMP),
        ),
        "ImportPreview": record(
            source=or_null("shlink"),
            format=choice("csv", "json", "jsonl", "sql", "zip", "service"),
            columns=_COLUMNS,
            mapping=map_of("Long URL", "url"),
            rows=array_of(ref("ImportRow")),
        ),
        "ImportRow": record(
            number=number(1, 1),
            link=map_of("https://example.com/sale", "url"),
            channels=array_of("newsletter") | {"examples": [["newsletter"]]},
            created=or_null("2024-01-31 10:00:00"),
            clicks=or_null(1204),
            visits=0,
            problem=or_null("custom must be 1 to 50 letters, digits, '_' or '-'."),
        ),
        "ImportError": record(
            number=number(17, 1),
            raw=map_of("https://example.com/sale", "Long URL"),
            code="alias_taken",
            message="This alias is already in use. Choose another one.",
        ),
    },
    operations=(
        Operation("GET /api/imports", "List imports", listing("imports", "Import"), query=PAGING),
        Operation(
            "POST /api/imports",
            "Import links",
            success(message="Import has been queued.", id=ID, data=ref("ImportPreview")) | {"required": ["error"]},
            imports.ServiceToRead,
            codes=(
                "address_too_long",
                "file_missing",
                "file_too_large",
                "form_too_large",
                "upload_timeout",
                "uploads_busy",
                "import_unrecognized",
                "import_unreadable",
                "imports_full",
            ),
            description=f"""\
The response has the `id` of the import, or with `dry_run=1` only `data`: what was recognized and the first
{requests.PREVIEW_ROWS} rows as they would be stored, among the first 64 KiB of a file or the first page of a
service, which has {2 * DEADLINE:.0f} seconds. A user can have at most {MAX_UNFINISHED} unfinished imports;
of those that have ended, the newest {MAX_KEPT:,} are kept. The parameters can also be fields of the form. A
row has at most {MAX_CHANNELS} tags, which become channels.

`on_conflict` is about the aliases of links. Other rows in the zip of an account are skipped if you have them already,
and the imported links use yours, which are not changed: domains with the same URL, campaigns and channels with the same
name, pixels, splash pages and overlays with the same members, QR codes with the same code, and bio pages with the same
alias. If another user has the code of a QR code or the generated alias of a bio page, a new one is generated. A domain,
the slug of a campaign or the custom alias of a bio page that is in use is a failure.""",
            query={name: _parameter(field) for name, field in _RULES.items()},
            also={
                "multipart/form-data": _FORM,
                **dict.fromkeys(("text/csv", "application/x-ndjson", "application/sql", "application/gzip"), _FILE),
                "application/zip": _FILE,
            },
        ),
        Operation(
            "GET /api/imports/{import_id}",
            "Read the state of an import",
            reading("Import"),
            tagged=True,
            description="""\
A file or service is read first; then its rows are stored. `read` is the number of rows stored so far: the sum of
`made`, `updated`, `skipped`, `failed` and those that have only visits, in the zip of an account also only a logo or an
answer. `percent` is the part that is done; reading a file is the first half. `seconds_left` is an estimate while the
import is running. `message` is the reason if it failed or is paused, or a note: for example, titles that were cut.""",
        ),
        Operation(
            "GET /api/imports/{import_id}/errors",
            "Read the rows that failed",
            success(data=array_of(ref("ImportError"))),
            codes=("export_busy", "own_export_busy"),
            description=f"""\
A CSV of the failed rows with the columns of the source and the reason, or JSON with the header
`Accept: application/json`. Correct the rows and send the file again; the column `error` is ignored. A password is
`{REMOVED}`: fill it in again. At most {MAX_ERRORS:,} rows of an import and {MAX_ERROR_BYTES >> 20} MiB of all
imports are kept, for {ERROR_DAYS} days; those of the oldest imports are deleted first. Members of objects in JSON are
columns such as `meta.validUntil`. A row has at most {MAX_TEXT:,} characters here: the long cells of others are cut, and
end with `{CUT}`.

After the import of an account, the columns are `file`, such as `links.jsonl`, and `line`, the JSON object of the row:
for example, change its `alias` if it was in use. Ids in it, such as `campaign` and `pixels`, are those of your account.
Visits of a link or QR code that failed are not imported; its `clicks` become `imported_clicks`.""",
            csv="Short URL,Long URL,error\r\nsale,ftp://example.com,url must be a URL that begins with http:// or https://.",
        ),
        Operation(
            "POST /api/imports/{import_id}/continue",
            "Continue an import",
            done("Import has been continued."),
            codes=("import_not_paused",),
            description=f"""\
An import from a service that does not respond asks it again after increasing pauses, and then waits in the state
`paused`; so does one whose service has asked to wait (status 429 or 503) for {MAX_FAILING_HOURS} hours. This continues
it where it stopped. After a week it is cancelled.""",
        ),
        Operation(
            "DELETE /api/imports/{import_id}",
            "Cancel an import, or delete its record",
            done("Import has been cancelled."),
            description="""\
An import that is queued, running or paused is cancelled; the links that it created remain. For one that has ended, the
record and the failed rows are deleted.""",
        ),
    ),
)
