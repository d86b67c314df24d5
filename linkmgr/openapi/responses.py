"""What each operation can answer: the success, and every refusal with its codes."""

from collections import defaultdict
from collections.abc import Iterable

from apispec.core import Components

from linkmgr.openapi import examples
from linkmgr.openapi.operations import Operation
from linkmgr.openapi.schemas import SHAPES, JsonSchema, record, ref
from linkmgr.web.errors import CATALOGUE

_LIMITS = {
    "X-RateLimit-Limit": "The requests of a window.",
    "X-RateLimit-Remaining": "How many of them remain.",
    "X-RateLimit-Reset": "The epoch second at which the window ends.",
}
_ID = {"X-Request-Id": "The request's name in the log: the client's own, or made here."}
_TAG = {"ETag": "Sent back in If-None-Match, it asks whether the answer is still the same."}
_RETRY = {"Retry-After": "Seconds after which it may be tried again."}
_TITLES = {
    400: "Something in what was sent does not fit",
    401: "The API key does not hold",
    403: "The plan or the user's role does not allow it",
    404: "There is no such row among the caller's own, or no such path",
    413: "The body is too large",
    414: "The address is too long",
    415: "The body is a form",
    429: "The requests of the window are used up",
    500: "A fault of the service",
    503: "It may be tried again soon",
}
_ALWAYS = ("bad_request", "rate_limited", "bug", "unavailable", "busy", "schema_too_old")
_KEYED = ("key_missing", "key_unknown", "key_expired", "plan_feature")
_IN_PATH = ("missing", "no_such_operation")
_IN_BODY = ("invalid", "value_refused", "too_large", "not_json")
_FILLED_IN = {"problems": "name is required", "detail": "the API", "limit": 30, "per": "minute", "seconds": 2}

Codes = dict[int, list[str]]  # by the status


def _headers(*names: str) -> JsonSchema:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _by_status(codes: Iterable[str]) -> Codes:
    """In the order of the catalogue."""
    found: Codes = defaultdict(list)
    for code in sorted(set(codes), key=list(CATALOGUE).index):
        found[CATALOGUE[code][0]].append(code)
    return dict(sorted(found.items()))


# What most operations answer alike stands in the document once.
_SHARED = _by_status([*_ALWAYS, *_KEYED, *_IN_PATH, *_IN_BODY])


def _envelope(codes: list[str]) -> JsonSchema:
    return record(
        error={"type": "integer", "enum": [1]}, message={"type": "string"}, code={"type": "string", "enum": codes}
    )


def _refusal(status: int, codes: list[str], schema: JsonSchema) -> JsonSchema:
    reasons = "\n".join(f"- `{code}`: {CATALOGUE[code][1]}" for code in codes)
    example = {"error": 1, "message": CATALOGUE[codes[0]][1].format(**_FILLED_IN), "code": codes[0]}
    return {
        "description": f"{_TITLES[status]}.\n\n{reasons}",
        "headers": _headers(*_LIMITS, *_ID, *(_RETRY if status in (429, 503) else ())),
        "content": {"application/json": {"schema": schema, "example": example}},
    }


def _success(documented: Operation) -> JsonSchema:
    content: JsonSchema = {"schema": documented.answer}
    if example := examples.of(documented.answer, SHAPES):
        content["example"] = example
    headers = _headers(*_LIMITS, *_ID, *(_TAG if documented.tagged else ()))
    return {"description": "Done.", "headers": headers, "content": {"application/json": content}}


def _unchanged() -> JsonSchema:
    return {"description": "The client has it: its ETag was sent.", "headers": _headers(*_LIMITS, *_ID, *_TAG)}


def of(documented: Operation, *, keyed: bool, administration: bool, in_path: bool, checked: bool) -> JsonSchema:
    """By status.  `checked`: the path or the query has something that can be wrong."""
    codes = [*_ALWAYS, *documented.codes]
    codes += _KEYED if keyed else ()
    codes += ("administrators_only",) if administration else ()
    codes += _IN_PATH if in_path else ()
    codes += _IN_BODY if documented.body else ("invalid",) if checked else ()
    refusals = {
        str(status): f"Refusal{status}" if found == _SHARED.get(status) else _refusal(status, found, _envelope(found))
        for status, found in _by_status(codes).items()
    }
    unchanged = {"304": _unchanged()} if documented.tagged else {}
    return {"200": _success(documented), **unchanged, **refusals}


def add_components(components: Components) -> None:
    for name, description in (_LIMITS | _RETRY | _ID | _TAG).items():
        schema: JsonSchema = {"type": "string"} if name in _ID | _TAG else {"type": "integer", "minimum": 0}
        components.header(name, {"description": description, "required": True, "schema": schema})
    for status, codes in _SHARED.items():
        name = f"Refusal{status}"
        components.schema(name, _envelope(codes))
        components.response(name, _refusal(status, codes, ref(name)))
