"""/api/urls/bulk and /api/qr/bulk"""

from linkmgr.api import bulk
from linkmgr.fields.bulk import MAX_ELEMENTS
from linkmgr.openapi.model import Operation, Section
from linkmgr.openapi.schemas import ID, JsonSchema, array_of, number, own_url, record, ref, success, text

_INDEX = number(0) | {"description": "The position of the element in the request, from 0."}
_CODES = ("bulk_refused", "bulk_too_large", "rows_limited")


def _results(done: str, **members: JsonSchema) -> JsonSchema:
    """Return the schema of a response with the results of all elements. `done` is the name of their number."""
    result = {"anyOf": [record(index=_INDEX, **members), ref("BulkFailure")]}
    return success(**{done: number(1000), "failed": number(0)}, results=array_of(result))


SECTION = Section(
    name="Bulk",
    description=f"""\
One request for up to {MAX_ELEMENTS:,} rows. The elements of `urls` and `qrs` are the bodies of the single operations;
`results` has one result for each element, in the order of the request. An element that fails has `error` 1 with a
`message` and a `code`, as the single operation would return them, and does not stop the others: the status is 200.
Warnings begin with the element that caused them, such as `urls[3]`.

With `atomic`, either all elements are carried out or none. If one fails, the status is 400, the code is `bulk_refused`,
and `results` has the elements that failed. If some are not valid, only these are in `results`: correct them to learn
whether the others can be stored.

- **Size.** Bodies have up to 2 MiB here, instead of 64 KiB. An empty array, and one with more than {MAX_ELEMENTS:,}
  elements, is a 400.
- **Limits.** A bulk request counts as one request. Its elements also count in a budget of rows, 5,000 per minute unless
  the operator changes it. The headers `X-RateLimit-Rows-Limit`, `X-RateLimit-Rows-Remaining` and
  `X-RateLimit-Rows-Reset` (an epoch second) report it. A request that exceeds it is a 429, changes nothing and is not
  counted.
- **Plan.** If the plan allows three more links, the first three that can be stored are stored.
- **Order.** Within a request, an alias belongs to the first link that can have it. The same URL twice, without other
  members, is one link.
- **Slow members.** A request may have at most {bulk.MAX_PASSWORDS} different passwords, {bulk.MAX_LOGOS} different
  logos, and {bulk.MAX_LOGO_URLS} different URLs of logos.
- **Channels and pixels.** Together, the links of a request may have at most {bulk.MAX_ASSIGNED:,}: for example 1,000
  links with 20 each. More is a 400 and changes nothing.
- **Ids** may be repeated and may be strings. An id that is not yours has the code `missing`.
- **If-Match** is the version of one record, so bulk requests do not support it.
- **Safe to repeat.** As with all writes, `Idempotency-Key` makes it safe to send a request again.""",
    records={
        "BulkFailure": record(
            index=_INDEX,
            error={"type": "integer", "enum": [1]},
            code=text("alias_taken"),
            message=text("This alias is already in use. Choose another one."),
        )
    },
    operations=(
        Operation(
            "POST",
            "/api/urls/bulk",
            "Shorten many URLs",
            _results("created", id=ID, shorturl=own_url("autumn")),
            bulk.LinksCreate,
            {"urls": bulk.NEW_LINKS},
            codes=_CODES,
        ),
        Operation(
            "PUT",
            "/api/urls/bulk",
            "Change many links",
            _results("updated", id=ID, shorturl=own_url("autumn")),
            bulk.LinksUpdate,
            {"ids": [17, 18], "data": bulk.NEW_MEMBERS},
            codes=(*_CODES, "etag_invalid"),
            many=True,
        ),
        Operation(
            "POST",
            "/api/urls/bulk/delete",
            "Delete many links",
            _results("deleted", id=ID),
            bulk.LinkIds,
            {"ids": [17, 18]},
            codes=_CODES,
        ),
        Operation(
            "POST",
            "/api/qr/bulk",
            "Create many QR codes",
            _results("created", id=ID, link=own_url("qr/xkcd1234")),
            bulk.QrCodesCreate,
            {"qrs": bulk.NEW_CODES},
            codes=_CODES,
        ),
    ),
)
