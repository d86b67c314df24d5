"""Members of bulk requests. Their elements are validated one by one, so that an invalid one fails
alone."""

from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, fields

from linkmgr.core.errors import AppError
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.links import parse_id
from linkmgr.core.fields.member import JsonSchema, ref

MAX_ELEMENTS = 1000
MAX_DETAILED = 200  # failures with `errors` in a response; each has up to 5 KB


def _array(items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": MAX_ELEMENTS}


class Elements(fields.Field[list[Any]]):
    default_error_messages = {"required": "is required"}

    def __init__(self, element: type[Schema], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.element, self.nested = element, (element,)
        self.json = _array(ref(element))

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        if not (isinstance(value, list) and 1 <= len(value) <= MAX_ELEMENTS):
            raise ValidationError(f"must be an array of 1 to {MAX_ELEMENTS} objects")
        return value


class ManyIds(fields.Field[list[int]]):
    default_error_messages = {
        "required": "is required",
        "invalid": f"must be an array of 1 to {MAX_ELEMENTS} ids such as [17, 18]",
    }
    # Any integer: an id of no row fails alone.
    json: ClassVar[JsonSchema] = _array({"type": "integer", "description": "An id, also as a string."})

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[int]:
        if not (isinstance(value, list) and 1 <= len(value) <= MAX_ELEMENTS):
            raise self.make_error("invalid")
        ids = [row_id for item in value if (row_id := parse_id(item)) is not None]
        if len(ids) < len(value):
            raise self.make_error("invalid")
        return ids


class Body(fields.Field[dict[str, Any]]):
    default_error_messages = {"required": "is required"}

    def __init__(self, element: type[Schema], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.element, self.nested = element, (element,)
        self.json = ref(element)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValidationError("must be an object")
        try:
            return load(self.element, value)
        except AppError as error:
            raise ValidationError(f"is invalid: {error.message.removesuffix('.')}") from None


def load_element(schema: type[Schema], element: Any) -> dict[str, Any]:
    if not isinstance(element, dict):
        raise AppError("invalid", problems="The element must be an object")
    return load(schema, element)
