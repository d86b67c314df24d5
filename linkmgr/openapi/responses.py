"""Responses of each operation: the success, and every error with its codes."""

from collections import defaultdict
from collections.abc import Iterable

from apispec.core import Components

from linkmgr.openapi.model import Access, Operation
from linkmgr.openapi.operations import RECORDS
from linkmgr.openapi.schemas import JsonSchema, example_of, record, ref
from linkmgr.web.errors import CATALOGUE

_LIMITS = {
    "X-RateLimit-Limit": "The requests allowed in a window.",
    "X-RateLimit-Remaining": "The requests left in this window.",
    "X-RateLimit-Reset": "The epoch second at which the window ends.",
}
_ID = {"X-Request-Id": "The id of the request in the log: the one that the client sent, or a new one."}
_TAG = {"ETag": "The version of the response. Send it in If-None-Match."}
_RETRY = {"Retry-After": "The seconds after which you can try again."}
_TITLES = {
    400: "The request is invalid, a value is already in use, or a limit of the plan is reached",
    401: "The API key is missing, unknown or expired",
    403: "The plan or the user's role does not allow it",
    404: "The path does not exist, or the user owns no row with this id",
    413: "The body is too large",
    414: "The URL is too long",
    415: "The body is not JSON",
    429: "The rate limit is exceeded",
    500: "Internal error",
    503: "The service is temporarily unavailable",
}
_ALWAYS = ("bad_request", "rate_limited", "bug", "unavailable", "busy", "schema_too_old")
_KEYED = ("key_missing", "key_unknown", "key_expired", "plan_feature")
_IN_PATH = ("missing", "no_such_operation")
_IN_BODY = ("invalid", "value_refused", "too_large", "not_json")
_PLACEHOLDERS = {  # of the messages in examples
    "problems": "name is required",
    "detail": "the API",
    "what": "link or QR code",
    "limit": 30,
    "per": "minute",
    "seconds": 2,
    "id": "5d41402abc4b2a76",
}

Codes = dict[int, list[str]]  # by status


def _headers(*names: str) -> JsonSchema:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _by_status(codes: Iterable[str]) -> Codes:
    """Group the codes by status, in the order of the catalogue."""
    grouped: Codes = defaultdict(list)
    for code in sorted(set(codes), key=list(CATALOGUE).index):
        grouped[CATALOGUE[code][0]].append(code)
    return dict(sorted(grouped.items()))


# Errors that most operations share appear in the document only once.
_SHARED = _by_status([*_ALWAYS, *_KEYED, *_IN_PATH, *_IN_BODY])


def _envelope(codes: list[str]) -> JsonSchema:
    return record(
        error={"type": "integer", "enum": [1]}, message={"type": "string"}, code={"type": "string", "enum": codes}
    )


def _error_response(status: int, codes: list[str], schema: JsonSchema | None = None) -> JsonSchema:
    reasons = "\n".join(f"- `{code}`: {CATALOGUE[code][1]}" for code in codes)
    example = {"error": 1, "message": CATALOGUE[codes[0]][1].format(**_PLACEHOLDERS), "code": codes[0]}
    return {
        "description": f"{_TITLES[status]}.\n\n{reasons}",
        "headers": _headers(*_LIMITS, *_ID, *(_RETRY if status in (429, 503) else ())),
        "content": {"application/json": {"schema": schema or _envelope(codes), "example": example}},
    }


def _success(operation: Operation) -> JsonSchema:
    content: JsonSchema = {"schema": operation.response}
    if example := example_of(operation.response, RECORDS):
        content["example"] = example
    headers = _headers(*_LIMITS, *_ID, *(_TAG if operation.tagged else ()))
    table = {"text/csv": {"schema": {"type": "string"}, "example": operation.csv}} if operation.csv else {}
    return {"description": "Success.", "headers": headers, "content": {"application/json": content, **table}}


def _not_modified() -> JsonSchema:
    return {
        "description": "Not modified: the client sent the ETag of the current version.",
        "headers": _headers(*_LIMITS, *_ID, *_TAG),
    }


def of(operation: Operation) -> JsonSchema:
    """Return the responses by status."""
    codes = [*_ALWAYS, *operation.codes]
    codes += _KEYED if operation.access is not Access.PUBLIC else ()
    codes += ("administrators_only",) if operation.access is Access.ADMINISTRATOR else ()
    codes += _IN_PATH if operation.arguments else ()
    codes += _IN_BODY if operation.body else ("invalid",) if operation.query or "type" in operation.arguments else ()
    errors = {
        str(status): f"Refusal{status}" if group == _SHARED.get(status) else _error_response(status, group)
        for status, group in _by_status(codes).items()
    }
    unchanged = {"304": _not_modified()} if operation.tagged else {}
    return {"200": _success(operation), **unchanged, **errors}


def add_components(components: Components) -> None:
    for name, description in (_LIMITS | _RETRY | _ID | _TAG).items():
        schema: JsonSchema = {"type": "string"} if name in _ID | _TAG else {"type": "integer", "minimum": 0}
        components.header(name, {"description": description, "required": True, "schema": schema})
    for status, codes in _SHARED.items():
        name = f"Refusal{status}"
        components.schema(name, _envelope(codes))
        components.response(name, _error_response(status, codes, ref(name)))
