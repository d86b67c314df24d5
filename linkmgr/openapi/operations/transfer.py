"""Exports of rows and of a whole account, and /api/imports"""

from typing import Any

from marshmallow import fields

from linkmgr.api import export, imports
from linkmgr.fields.base import MAX_ID
from linkmgr.fields.member import JsonSchema
from linkmgr.fields.query import PAGING, Parameter
from linkmgr.imports import cells, links, requests
from linkmgr.imports.account.export import FILES
from linkmgr.imports.files import text
from linkmgr.imports.job import MAX_FAILING_HOURS
from linkmgr.openapi.model import Operation, listed, prose
from linkmgr.outbound.service_api import DEADLINE
from linkmgr.repository import import_rows
from linkmgr.repository import imports as stored
from linkmgr.resources import shapes as js
from linkmgr.resources.shapes import name_of
from linkmgr.web import csv
from linkmgr.web.export import BUSY, FORMATS

_FORMAT = Parameter(
    "Without it, the header `Accept` chooses: `application/json`, `text/csv` or `application/jsonl`.",
    type="string",
    enum=list(FORMATS),
    default="json",
)
_AFTER = Parameter(
    "Only rows behind this id: the last one of an interrupted export.", type="integer", minimum=0, maximum=MAX_ID
)
_ANSWER = js.record(
    id=js.ID, overlay=js.ID, name="News", answer={"examples": [{"email": "visitor@example.com"}]}, date=js.TIMESTAMP
)
_CODES = (*BUSY, "plan_feature")


def _export(path: str, summary: str, name: str, columns: export.Columns, **query: Parameter) -> Operation:
    return Operation(
        f"GET {path}",
        summary,
        js.success(data=js.array_of(js.ref(name))),
        query={"format": _FORMAT, **query},
        codes=_CODES,
        files={"text/csv": csv.lines([[*columns]]).decode(), "application/jsonl": ""},
    )


EXPORTS = listed(
    "export",
    "Exports",
    description=prose("exports"),
    records=lambda: {"AnswerExported": _ANSWER},
    operations=(
        *(
            _export(
                f"/api/{kind.resource.plural}/export",
                f"Export {kind.resource.noun}s",
                name_of(kind.resource, "export"),
                kind.columns,
                after=_AFTER,
            )
            for kind in export.EXPORTS
        ),
        _export("/api/overlay/answers/export", "Export answers to overlays", "AnswerExported", export.ANSWERS),
        _export("/api/url/{link_id}/visits/export", "Export the visits of a link", "Visit", export.VISITS),
        _export("/api/qr/{qr_id}/visits/export", "Export the visits of a QR code", "Visit", export.VISITS),
        Operation(
            "GET /api/account/export",
            "Export an account",
            js.success(),
            values={"files": ", ".join(f"`{name}.jsonl`" for name in FILES)},
            codes=_CODES,
            file="application/zip",
        ),
    ),
)

_STATES = ("queued", "running", "paused", "done", "failed", "cancelled", "draft")
_RULES = imports.ImportRules().fields
_PARTS = {"file": js.FILE["schema"]}  # the others are parameters too
_FORM: JsonSchema = {"schema": {"type": "object", "properties": _PARTS, "required": ["file"]}}
_NO_URL = "url must be a URL that begins with http:// or https://."
_COLUMNS = js.array_of("Long URL") | {"examples": [["Short URL", "Long URL"]]}


def _parameter(field: fields.Field[Any]) -> Parameter:
    schema = js.json_of(field) | {"default": field.load_default, "examples": field.metadata["examples"]}
    return Parameter(field.metadata["description"], **schema)


IMPORTS = listed(
    "imports",
    "Imports",
    description=prose("imports", text=text),
    records=lambda: {
        "Import": js.record(
            id=js.ID,
            state=js.choice(*_STATES),
            source="shlink",
            name="links.csv",
            on_conflict=js.choice(*imports.RULES),
            size=js.or_null(120_400),
            read=1200,
            made=1180,
            updated=0,
            skipped=15,
            failed=5,
            visits=0,
            seconds_left=js.or_null(12),
            percent=js.or_null(js.number(57) | {"maximum": 100}),
            message="",
            created=js.TIMESTAMP,
            started=js.or_null(js.TIMESTAMP),
            finished=js.or_null(js.TIMESTAMP),
        ),
        "ImportPreview": js.record(
            source=js.or_null("shlink"),
            format=js.choice("csv", "json", "jsonl", "sql", "zip", "service"),
            columns=_COLUMNS,
            mapping=js.map_of("Long URL", "url"),
            rows=js.array_of(js.ref("ImportRow")),
        ),
        "ImportRow": js.record(
            number=js.number(1, 1),
            link=js.map_of("https://example.com/sale", "url"),
            channels=js.array_of("newsletter") | {"examples": [["newsletter"]]},
            created=js.or_null("2024-01-31 10:00:00"),
            clicks=js.or_null(1204),
            visits=0,
            problem=js.or_null("custom must be 1 to 100 letters, digits, '_' or '-'."),
        ),
        "ImportError": js.record(
            number=js.number(17, 1),
            raw=js.map_of("https://example.com/sale", "Long URL"),
            code="import_inactive",
            message="Row 17 is deleted at the source. Leave the row out, or empty its column 'deleted'.",
        ),
    },
    operations=(
        Operation("GET /api/imports", "List imports", js.listing("imports", "Import"), query=PAGING),
        Operation(
            "POST /api/imports",
            "Import links",
            js.success(message="Import has been queued.", id=js.ID, data=js.ref("ImportPreview"))
            | {"required": ["error"]},
            imports.ServiceToRead,
            values={"requests": requests, "links": links, "stored": stored, "seconds": 2 * DEADLINE},
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
            query={name: _parameter(field) for name, field in _RULES.items()},
            also={
                "multipart/form-data": _FORM,
                **dict.fromkeys(("text/csv", "application/x-ndjson", "application/sql", "application/gzip"), js.FILE),
                "application/zip": js.FILE,
            },
        ),
        Operation("GET /api/imports/{import_id}", "Read the state of an import", js.reading("Import"), tagged=True),
        Operation(
            "GET /api/imports/{import_id}/errors",
            "Read the rows that failed",
            js.success(data=js.array_of(js.ref("ImportError"))),
            values={"cells": cells, "import_rows": import_rows, "mib": import_rows.MAX_ERROR_BYTES >> 20},
            codes=BUSY,
            files={"text/csv": f"Short URL,Long URL,error\r\nsale,ftp://example.com,{_NO_URL}"},
        ),
        Operation(
            "POST /api/imports/{import_id}/continue",
            "Continue an import",
            js.done("Import has been continued."),
            values={"hours": MAX_FAILING_HOURS},
            codes=("import_not_paused",),
        ),
        Operation(
            "DELETE /api/imports/{import_id}",
            "Cancel an import, or delete its record",
            js.done("Import has been cancelled."),
        ),
    ),
)
