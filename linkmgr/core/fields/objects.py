from typing import Any

from marshmallow import Schema, ValidationError, fields

from linkmgr.core.fields.member import ref
from linkmgr.core.fields.problems import join_problems
from linkmgr.core.fields.unknown import warn_unknown


class Objects(fields.Field[list[dict[str, Any]]]):
    """An array of objects of a schema. Messages name the number of an object, from 1."""

    default_error_messages = {"required": "is required"}

    def __init__(self, element: type[Schema], maximum: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.element, self.maximum, self.nested = element(), maximum, (element,)
        self.parts = tuple(self.element.fields)
        self._listed = f"{', '.join(self.parts[:-1])} and {self.parts[-1]}"
        self.json = {"type": "array", "items": ref(element), "maxItems": maximum}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list):
            raise ValidationError(f"must be an array of objects with {self._listed}")
        if len(value) > self.maximum:
            raise ValidationError(f"must have at most {self.maximum} {attr}")
        return [self._object(number, item, f"{attr}.") for number, item in enumerate(value, 1)]

    def _object(self, number: int, value: Any, prefix: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValidationError(f"number {number} must be an object with {self._listed}")
        try:
            loaded: dict[str, Any] = self.element.load(value)
        except ValidationError as error:
            raise ValidationError(f"number {number}: {join_problems(dict(error.messages_dict))}") from None
        warn_unknown(type(self.element), self.element.fields, value, prefix)
        return loaded
