"""The entries of operations/: a resource with its operations, its records and the members of its bodies."""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from marshmallow import Schema

from linkmgr.fields.base import DEFAULT_LIMIT, MAX_LIMIT, MAX_PAGE
from linkmgr.openapi.schemas import JsonSchema


class Access(Enum):
    """Who may call an operation."""

    USER = "any user, on the user's own rows"
    ADMINISTRATOR = "administrators, on all rows"
    PUBLIC = "any client, without a key"


@dataclass(frozen=True)
class Member:
    """A member of a body. Its type and bounds come from the field of the schema."""

    example: Any
    description: str = ""
    default: Any = None  # on create, where the database sets it; the field's own default needs no entry


@dataclass(frozen=True, eq=False)
class Operation:
    method: str
    path: str  # as in the document: /api/pixel/{pixel_id}
    summary: str
    answer: JsonSchema
    body: type[Schema] | None = None
    example: dict[str, Any] = field(default_factory=dict)  # of the body, to be copied
    codes: tuple[str, ...] = ()  # the errors of this operation; responses.py adds those of all operations of its kind
    query: tuple[JsonSchema, ...] = ()
    access: Access = Access.USER
    description: str = ""
    tagged: bool = False  # True: the answer has an ETag

    @property
    def arguments(self) -> list[str]:
        """The names of the parameters in the path."""
        return re.findall(r"{(\w+)}", self.path)


Members = dict[str, Member]


@dataclass(frozen=True)
class Resource:
    """A section of the document. `tables` maps titles to schemas that /api/docs shows below the members."""

    name: str
    operations: tuple[Operation, ...]
    description: str = ""
    members: Members = field(default_factory=dict)
    nested: dict[type[Schema], Members] = field(default_factory=dict)
    records: dict[str, JsonSchema] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)


def parameter(name: str, description: str, **schema: Any) -> JsonSchema:
    return {"name": name, "in": "query", "description": description, "schema": schema}


PAGING = (
    parameter(
        "limit",
        f"The number of rows on a page. A number above {MAX_LIMIT} means {MAX_LIMIT}.",
        type="integer",
        minimum=1,
        default=DEFAULT_LIMIT,
    ),
    parameter("page", "The number of the page.", type="integer", minimum=1, maximum=MAX_PAGE, default=1),
)

# Error codes of several resources
COUNTED = ("plan_feature", "plan_limit")
