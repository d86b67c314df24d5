"""/api/imports"""

from typing import Any

from marshmallow import fields

from linkmgr.api import imports
from linkmgr.fields.query import PAGING, Parameter
from linkmgr.imports import cells, links, requests
from linkmgr.imports.files import text
from linkmgr.imports.job import MAX_FAILING_HOURS
from linkmgr.openapi.bodies import json_of
from linkmgr.openapi.model import Operation, Section, prose
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
from linkmgr.repository import import_rows
from linkmgr.repository import imports as stored

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
    description=prose("imports", text=text),
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
            description=prose("import_links", requests=requests, links=links, stored=stored, seconds=2 * DEADLINE),
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
            description=prose("import_state"),
        ),
        Operation(
            "GET /api/imports/{import_id}/errors",
            "Read the rows that failed",
            success(data=array_of(ref("ImportError"))),
            codes=("export_busy", "own_export_busy"),
            description=prose(
                "import_errors", cells=cells, import_rows=import_rows, mib=import_rows.MAX_ERROR_BYTES >> 20
            ),
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
