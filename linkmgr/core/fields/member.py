"""Metadata of a member: description, example, label, visibility.

Each field type has its JSON Schema as `json`, the schemas that this refers to as `nested`, and the
JSON Schema of what reads show as `json_shown`, if it has another form.
"""

from typing import Any, TypeVar

from marshmallow import Schema, fields

from linkmgr.core.fields.urls import MAX_URL

JsonSchema = dict[str, Any]
F = TypeVar("F", bound=fields.Field[Any])


def member(
    field: F,
    about: str,
    example: Any,
    *,
    label: str = "",
    fixed: bool = False,
    needed: bool = False,
    shown: str = "record list export",
    options: dict[str, str] | None = None,
    synonyms: str = "",
    default: Any = None,
    removed: Any = None,
) -> F:
    """Declare a member. `label` puts it into forms. One that is `fixed` is not changed, and one
    that is `needed` is required on update too. `shown` says where it is shown. `options` are the
    labels of choices in forms. `synonyms` are the names that other services use. `default` is what
    the database stores if the member is not sent, and `removed` is what a null in an update means;
    without it, null means not sent."""
    marks: dict[str, Any] = {"label": label, "fixed": fixed, "needed": needed, "options": options}
    marks |= {
        "default": default,
        "removed": removed,
        "synonyms": synonyms.split(),
        "shown": () if field.load_only else shown.split(),
    }
    field.metadata = {"description": about, "examples": [example], **marks}
    return field


def ref(schema: type[Schema]) -> JsonSchema:
    return {"$ref": f"#/components/schemas/{schema.__name__}"}


def url_json(about: str) -> JsonSchema:
    return {
        "type": "string",
        "format": "iri",
        "pattern": "^https?://",
        "maxLength": MAX_URL,
        "description": about,
    }


def first_examples(schema: type[Schema], number: int) -> dict[str, Any]:
    fields = schema().fields
    names = [name for name, member in fields.items() if member.required]
    kept = names if len(names) >= number else [*fields][:number]
    return {name: fields[name].metadata["examples"][0] for name in kept}
