"""/api/urls/bulk and /api/qr/bulk"""

from marshmallow import Schema

from linkmgr.api import bulk
from linkmgr.fields.bulk import MAX_ELEMENTS
from linkmgr.openapi.model import Operation, Section, prose
from linkmgr.openapi.schemas import ERRORS, ID, JsonSchema, array_of, example_of, number, own_url, record, success

_INDEX = number(0) | {"description": "The position of the element in the request, from 0."}
_SHORT = own_url("autumn")
_CODES = ("bulk_refused", "bulk_too_large", "rows_limited")


_FAILURE = record(
    index=_INDEX,
    error={"type": "integer", "enum": [1]},
    code="alias_taken",
    message="This alias is already in use. Choose another one.",
    errors=ERRORS,
) | {"required": ["index", "error", "code", "message"]}


def _operation(route: str, summary: str, body: type[Schema], done: str, **members: JsonSchema) -> Operation:
    """Return the operation whose response has the results of all elements. `done` is the name of their number, and
    `members` are those of an element that succeeds."""
    made = record(index=_INDEX, id=ID, **members)
    result = _FAILURE | {"properties": made["properties"] | _FAILURE["properties"], "required": ["index"]}
    result["examples"] = [example_of(made, {})]
    response = success(**{done: 1000, "failed": 0}, results=array_of(result))
    is_update = route.startswith("PUT")
    codes = (*_CODES, "etag_invalid") if is_update else _CODES
    return Operation(route, summary, response, body, codes=codes, many=is_update)


SECTION = Section(
    name="Bulk",
    description=prose("bulk", bulk=bulk, rows=MAX_ELEMENTS),
    records={"BulkFailure": _FAILURE},
    operations=(
        _operation("POST /api/urls/bulk", "Shorten many URLs", bulk.LinksCreate, "created", shorturl=_SHORT),
        _operation("PUT /api/urls/bulk", "Change many links", bulk.LinksUpdate, "updated", shorturl=_SHORT),
        _operation("POST /api/urls/bulk/delete", "Delete many links", bulk.LinkIds, "deleted"),
        _operation(
            "POST /api/qr/bulk", "Create many QR codes", bulk.QrCodesCreate, "created", link=own_url("qr/xkcd1234")
        ),
    ),
)
