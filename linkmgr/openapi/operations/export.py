"""Exports of rows and of a whole account"""

from linkmgr.api import export
from linkmgr.fields.base import MAX_ID
from linkmgr.fields.query import Parameter
from linkmgr.openapi.model import Operation, Section, prose
from linkmgr.openapi.schemas import ID, TIMESTAMP, array_of, record, ref, success
from linkmgr.openapi.usual import name_of
from linkmgr.web import csv
from linkmgr.web.export import FORMATS

_FORMAT = Parameter(
    "Without it, the header `Accept` chooses: `application/json`, `text/csv` or `application/jsonl`.",
    type="string",
    enum=list(FORMATS),
    default="json",
)
_AFTER = Parameter(
    "Only rows behind this id: the last one of an interrupted export.",
    type="integer",
    minimum=0,
    maximum=MAX_ID,
)
_ANSWER = record(
    id=ID, overlay=ID, name="News", answer={"examples": [{"email": "visitor@example.com"}]}, date=TIMESTAMP
)
_CODES = ("export_busy", "own_export_busy", "plan_feature")


def _export(path: str, summary: str, name: str, columns: export.Columns, **query: Parameter) -> Operation:
    return Operation(
        f"GET {path}",
        summary,
        success(data=array_of(ref(name))),
        query={"format": _FORMAT, **query},
        codes=_CODES,
        csv=csv.lines([[*columns]]).decode(),
        lines=True,
    )


SECTION = Section(
    name="Exports",
    description=prose("exports"),
    records={"AnswerExported": _ANSWER},
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
            success(),
            codes=_CODES,
            description=prose("account_export"),
            file="application/zip",
        ),
    ),
)
