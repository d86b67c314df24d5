"""The problems of a body or a query: one sentence for all, and an entry in `errors` for each."""

from collections.abc import Mapping
from typing import Any

from marshmallow import fields

from linkmgr.core.errors import AppError
from linkmgr.core.fields.member import JsonSchema

# The codes of problems. The declared JSON Schema of a member decides which one a value has.
CODES = {
    "required": "not sent, or empty",
    "type": "another JSON type",
    "unknown_value": "not one of the possible values",
    "too_short": "fewer characters or elements than the least",
    "too_long": "more characters or elements than the most",
    "out_of_range": "a smaller or a larger number",
    "invalid": "any other problem",
}
_BOUNDS = {
    "maxLength": "too_long",
    "maxItems": "too_long",
    "minLength": "too_short",
    "minItems": "too_short",
    "maximum": "out_of_range",
    "minimum": "out_of_range",
}
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def _named(member: str, problem: str) -> str:
    """Return the sentence of a problem, which may begin with a place in the member, such as
    `[2].url`."""
    name = "" if member == "_schema" else member
    return f"{name}{problem}" if problem.startswith("[") else f"{name} {problem}".lstrip()


def join_problems(messages: dict[str, Any]) -> str:
    return "; ".join(
        _named(member, problem)
        for member, problems in messages.items()
        for problem in (problems if isinstance(problems, list) else [join_problems(problems)])
    )


def code_of(schema: JsonSchema, value: Any) -> str:
    types = _listed(schema.get("type", "object"))
    enum = schema.get("items", schema).get("enum")
    if value in (None, ""):
        return "required"
    if _TYPES.get(type(value)) not in types:
        return "type"
    if enum and any(item not in enum for item in _listed(value)):
        return "unknown_value"
    size = value if isinstance(value, int | float) else len(value)
    for name, code in _BOUNDS.items():
        bound = schema.get(name, size)
        if size > bound if name.startswith("max") else size < bound:
            return code
    return "invalid"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def problems_of(
    messages: dict[str, Any], members: Mapping[str, fields.Field[Any]], sent: dict[str, Any]
) -> AppError:
    errors = [
        {
            "field": "" if name == "_schema" else _named(name, message).partition(" ")[0],
            "code": code_of(getattr(members.get(name), "json", {}), sent.get(name)),
            "message": f"{_named(name, message)}.",
        }
        for name, texts in messages.items()
        for message in (texts if isinstance(texts, list) else [join_problems(texts)])
    ]
    return AppError("invalid", problems=join_problems(messages), errors=errors)


def invalid(sentence: str, code: str = "invalid", *, field: str = "") -> AppError:
    entry = {"field": field or sentence.partition(" ")[0], "code": code, "message": f"{sentence}."}
    return AppError("invalid", problems=sentence, errors=[entry])
