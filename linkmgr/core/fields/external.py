"""The id of a link in a program of its user, and the JSON object of that program."""

from typing import Any, ClassVar

import orjson
from marshmallow import ValidationError, fields

from linkmgr.core.errors import AppError
from linkmgr.core.fields import strict_json
from linkmgr.core.fields.base import Matching
from linkmgr.core.fields.member import JsonSchema

MAX_METADATA = 2048  # bytes as JSON


class ExternalId(Matching):
    """An id that can be a segment of a path, so that it begins with no dot."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            "[A-Za-z0-9][A-Za-z0-9_.:@=+~-]{0,254}",
            "1 to 255 letters, digits or _.:@=+~-, of which the first is a letter or a digit",
            **kwargs,
        )


class Metadata(fields.Field[dict[str, Any]]):
    """A JSON object. An empty array is an empty object, because PHP encodes one like that."""

    json: ClassVar[JsonSchema] = {"type": "object", "title": "AnyObject", "additionalProperties": {}}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:
        if value == []:
            return {}
        if not isinstance(value, dict):
            raise ValidationError("must be a JSON object")
        try:
            text = orjson.dumps(value)
            strict_json.parse(text)  # the rows of imports have been read by another parser
        except (TypeError, AppError):
            raise ValidationError("must be a JSON object without NUL characters and large numbers") from None
        if len(text) > MAX_METADATA:
            raise ValidationError(f"must be a JSON object of at most {MAX_METADATA:,} bytes")
        return value
