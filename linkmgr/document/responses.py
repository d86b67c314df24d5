"""Responses of each operation: the success, and every error with its codes."""

from collections import defaultdict
from collections.abc import Iterable
from http import HTTPStatus

from linkmgr.core.error_catalogue import CATALOGUE, FIELDS
from linkmgr.core.errors import as_json
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.problems import CODES
from linkmgr.core.fields.shapes import (
    ERRORS,
    FILE,
    TRACE,
    array_of,
    example_of,
    object_of,
    ref,
    text,
    with_warnings,
)
from linkmgr.core.web import idempotency, writes
from linkmgr.core.web.operation import Route
from linkmgr.core.web.scopes import PUBLIC

_LIMITS = {
    "X-RateLimit-Limit": "The requests allowed in a window.",
    "X-RateLimit-Remaining": "The requests left in this window.",
    "X-RateLimit-Reset": "The epoch second at which the window ends.",
    "RateLimit-Policy": 'The limit `q` and the window `w` in seconds, such as `"default";q=30;w=60`.',
    "RateLimit": 'The requests `r` left in this window, and its end in `t` seconds, such as `"default";r=29;t=42`.',
}
_ID = {
    "X-Request-Id": "The id of the request in the log: the one that the client sent, or a new one.",
    "Linkmgr-Version": "The release of the service.",
}
_TAG = {"ETag": "The version of the record. Send it in If-None-Match with the next read."}
_REPLAYED = {
    idempotency.REPLAYED: "`true` if this is the stored response to an earlier request with the same key."
}
_LINK = {"Link": 'The URL of the next page of a CSV, with `rel="next"`. Absent at the end.'}
_ROWS = {
    "X-RateLimit-Rows-Limit": "The rows of bulk requests allowed in a window. Absent in the "
    "response to a repetition.",
    "X-RateLimit-Rows-Remaining": "The rows left in this window.",
    "X-RateLimit-Rows-Reset": "The epoch second at which the window ends.",
}
_RETRY = {"Retry-After": "The seconds after which you can try again."}
_ALWAYS = ("bad_request", "rate_limited", "bug", "unavailable", "busy", "schema_too_old")
_KEYED = (
    "key_missing", "key_unknown", "key_expired", "account_suspended", "address_not_allowed", "scope_missing",
    "key_confined", "plan_feature",
)  # fmt: skip
_IN_PATH = ("missing", "no_such_operation")
_IN_BODY = ("invalid", "value_refused", "too_large", "not_json", "encoding_unsupported")
_OF_WRITES = (
    "idempotency_key_invalid", "idempotency_key_in_use", "idempotency_key_reused", "too_large", "other_secret",
)  # fmt: skip
_OF_CHANGES = ("etag_invalid", "changed_meanwhile")
_REQUEST = "5d41402abc4b2a76"
_PLACEHOLDERS = {  # of the messages in examples
    "problems": "name is required",
    "detail": "the API",
    "what": "link or QR code",
    "limit": 30,
    "per": "minute",
    "failed": 1,
    "sent": 1000,
    "seconds": 2,
    "id": _REQUEST,
    "color": "rgb(118,118,118)",
    "background": "rgb(255,255,255)",
    "change": "foreground to rgb(118,118,118)",
    "scope": "links:write",
    "limited": "the rows that it created",
    "remedy": "Use another key.",
    "deadline": 120,
    "number": 3,
    "rows": 250,
    "columns": "Name, Target",
    "problem": "The file is not text.",
    "host": "go.example.com",
    "found": "does not point to this service",
    "base_url": "https://go.example.org",
    "status": 404,
    "redirects": 3,
    "hint": "Did you mean GET /api/urls? /api/docs lists all operations.",
}

Codes = dict[int, list[str]]  # by status


def sentence_of(code: str) -> str:
    return CATALOGUE[code][1].format(**_PLACEHOLDERS)


def _headers(*names: str) -> JsonSchema:
    return {name: ref(name, "headers") for name in names}


def by_status(codes: Iterable[str]) -> Codes:
    grouped: Codes = defaultdict(list)
    for code in sorted(set(codes), key=list(CATALOGUE).index):
        grouped[CATALOGUE[code][0]].append(code)
    return dict(sorted(grouped.items()))


_COMMON = [*_ALWAYS, *_KEYED, *_IN_PATH]
# The errors of most operations of a group appear in the document only once, under a name with this
# prefix.
_SHARED = {
    "": by_status([*_COMMON, *_IN_BODY, *_OF_WRITES]),
    "Read": by_status([*_COMMON, "invalid"]),
    "List": by_status([*_COMMON, "invalid", "page_too_long"]),
    "Update": by_status([*_COMMON, *_IN_BODY, *_OF_WRITES, *_OF_CHANGES]),
    "Delete": by_status([*_COMMON, "invalid", *_OF_WRITES, *_OF_CHANGES]),
}
SHARED = {code for shared in _SHARED.values() for codes in shared.values() for code in codes}
# Names by status and codes. Groups with the same codes of a status share a name.
_NAMES = {
    (status, tuple(codes)): f"{prefix}Refusal{status}"
    for prefix, shared in reversed(_SHARED.items())
    for status, codes in shared.items()
}


def _error_response(status: int, codes: list[str]) -> JsonSchema:
    reasons = "\n".join(f"- `{code}`: {sentence_of(code)}" for code in codes)
    example = as_json(codes[0], sentence_of(codes[0]), _REQUEST, "https://go.example.org")
    return {
        "description": f"{HTTPStatus(status).phrase}.\n\n{reasons}",
        "headers": _headers(
            *_LIMITS,
            *_ID,
            *(_RETRY if status in (429, 503) else ()),
            *(_REPLAYED if idempotency.is_stored(status) else ()),
        ),
        "content": {
            "application/json": {
                "schema": ref("Error"),
                "example": example,
            }
        },
    }


def is_conditional(route: Route) -> bool:
    return route.method in writes.CHANGES and bool(route.operation.row)


def is_cacheable(route: Route) -> bool:
    return route.method == "GET" and route.operation.has_etag


def _success(route: Route, records: dict[str, JsonSchema]) -> JsonSchema:
    stated = route.operation
    # Without an example beside it
    named = {"$ref": stated.response["$ref"]} if "$ref" in stated.response else {}
    content: JsonSchema = {"schema": named or with_warnings(stated.response)}
    if example := example_of(stated.response, records):
        content["example"] = example
    headers = _headers(
        *_LIMITS,
        *_ID,
        *(_TAG if stated.has_etag else ()),
        *(_REPLAYED if route.method in writes.METHODS else ()),
        *(_ROWS if "rows_limited" in stated.errors else ()),
        *(_LINK if stated.file and {"after", "limit"} <= stated.query.keys() else ()),
    )
    readable: JsonSchema = {"schema": {"type": "string"}, "example": stated.file_example}
    file = readable if stated.file_example else FILE
    contents = {stated.file: file} if stated.file else {"application/json": content}
    return {"description": "Success.", "headers": headers, "content": contents}


def codes_of(route: Route) -> list[str]:
    stated = route.operation
    codes = [*_ALWAYS, *stated.errors]
    codes += _KEYED if stated.scope != PUBLIC else ()
    codes += ("administrators_only",) if stated.is_for_administrators else ()
    codes += _IN_PATH if route.arguments else ()
    is_checked = stated.query or stated.path or route.method == "DELETE"
    codes += _IN_BODY if stated.body or stated.media else ("invalid",) if is_checked else ()
    codes += ("page_too_long",) if "page" in stated.query else ()
    codes += _OF_WRITES if route.method in writes.METHODS else ()
    codes += _OF_CHANGES if is_conditional(route) else ()
    return codes


def of(route: Route, records: dict[str, JsonSchema]) -> JsonSchema:
    errors = {
        str(status): ref(_NAMES[status, tuple(group)], "responses")
        if (status, tuple(group)) in _NAMES
        else _error_response(status, group)
        for status, group in by_status(codes_of(route)).items()
    }
    unchanged = {"304": ref("NotModified", "responses")} if is_cacheable(route) else {}
    return {"200": _success(route, records), **unchanged, **errors}


def headers() -> JsonSchema:
    number: JsonSchema = {"type": "integer", "minimum": 0}
    schemas = {name: number for name in _LIMITS | _RETRY | _ROWS if not name.startswith("RateLimit")}
    always = {name: {"required": True} for name in _LIMITS | _RETRY | _ID | _TAG}
    return {
        name: {
            "description": description,
            "schema": schemas.get(name, {"type": "string"}),
            **always.get(name, {}),
        }
        for name, description in (_LIMITS | _RETRY | _ID | _TAG | _REPLAYED | _ROWS | _LINK).items()
    }


def errors(routes: Iterable[Route]) -> dict[str, JsonSchema]:
    codes_of_all = {code for route in routes for code in codes_of(route)} | {
        "short_url_unknown",
        "bulk_failed",
    }
    error = object_of(
        error=ref("Failure"),
        message={"type": "string", "description": "A sentence for people."},
        code={
            "type": "string",
            "x-known-values": sorted(codes_of_all),
            "description": "Stable, for programs.",
        },
        **TRACE,
    )
    problem = object_of(
        field=text(
            "url", description="The member of the body, as a path such as `data.email`, or the parameter."
        ),
        code=text(
            "required", **{"x-known-values": [*CODES, *(code for code in FIELDS if code in codes_of_all)]}
        ),
        message="url is required.",
    )
    failed = "The elements that failed, if a bulk request with `atomic` was refused."
    error["properties"] |= {
        "errors": ERRORS,
        "results": array_of(ref("BulkResult")) | {"description": failed},
    }
    return {"Error": error, "Problem": problem}


def shared() -> dict[str, JsonSchema]:
    refusals = {name: _error_response(status, [*codes]) for (status, codes), name in sorted(_NAMES.items())}
    about = "Not modified: the client sent the ETag of the current version."
    return refusals | {"NotModified": {"description": about, "headers": _headers(*_LIMITS, *_ID, *_TAG)}}
