"""/api/urls/bulk and /api/qr/bulk"""

from linkmgr.api import bulk
from linkmgr.openapi.model import Operation, Section
from linkmgr.openapi.schemas import ERRORS, ID, JsonSchema, array_of, example_of, number, own_url, record, success, text

_INDEX = number(0) | {"description": "The position of the element in the request, from 0."}
_CODES = ("bulk_refused", "bulk_too_large", "rows_limited")


_FAILURE = record(
    index=_INDEX,
    error={"type": "integer", "enum": [1]},
    code=text("alias_taken"),
    message=text("This alias is already in use. Choose another one."),
    errors=ERRORS,
) | {"required": ["index", "error", "code", "message"]}


def _results(done: str, **members: JsonSchema) -> JsonSchema:
    """Return the schema of a response with the results of all elements. `done` is the name of their number."""
    made = record(index=_INDEX, **members)
    result = _FAILURE | {"properties": made["properties"] | _FAILURE["properties"], "required": ["index"]}
    result["examples"] = [example_of(made, {})]
    return success(**{done: number(1000), "failed": number(0)}, results=array_of(result))


SECTION = Section(
    name="Bulk",
    description=bulk.ABOUT,
    records={"BulkFailure": _FAILURE},
    operations=(
        Operation(
            "POST",
            "/api/urls/bulk",
            "Shorten many URLs",
            _results("created", id=ID, shorturl=own_url("autumn")),
            bulk.LinksCreate,
            codes=_CODES,
        ),
        Operation(
            "PUT",
            "/api/urls/bulk",
            "Change many links",
            _results("updated", id=ID, shorturl=own_url("autumn")),
            bulk.LinksUpdate,
            codes=(*_CODES, "etag_invalid"),
            many=True,
        ),
        Operation(
            "POST",
            "/api/urls/bulk/delete",
            "Delete many links",
            _results("deleted", id=ID),
            bulk.LinkIds,
            codes=_CODES,
        ),
        Operation(
            "POST",
            "/api/qr/bulk",
            "Create many QR codes",
            _results("created", id=ID, link=own_url("qr/xkcd1234")),
            bulk.QrCodesCreate,
            codes=_CODES,
        ),
    ),
)
