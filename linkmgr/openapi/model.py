"""Types of the entries in operations/: sections and operations."""

import re
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from marshmallow import Schema

from linkmgr.fields.query import Parameter
from linkmgr.openapi.schemas import JsonSchema


class Access(Enum):
    """The clients that may call an operation, and their rows."""

    USER = "any user, on the user's own rows"
    ADMINISTRATOR = "administrators, on all rows"
    PUBLIC = "any client, without a key"


def _text(name: str) -> str:
    return (Path(__file__).parent / f"prose/{name}.md").read_text()


def prose(name: str, **values: Any) -> str:
    """Return a text of the folder `prose`. Names in braces are values, or members of them."""
    return _text(name).strip().format(**values)


@cache
def descriptions() -> dict[str, str]:
    """Return the texts of prose/operations.md by route."""
    texts = [text.partition("\n") for text in _text("operations").split("\n## ")[1:]]
    return {route: text.strip() for routes, _, text in texts for route in routes.split(", ")}


def first_examples(schema: type[Schema], number: int) -> dict[str, Any]:
    """Return the examples of the required members, or of the first ones if these are fewer."""
    fields = schema().fields
    names = [name for name, member in fields.items() if member.required]
    kept = names if len(names) >= number else [*fields][:number]
    return {name: fields[name].metadata["examples"][0] for name in kept}


@dataclass(frozen=True, eq=False)
class Operation:
    route: str  # such as GET /api/pixel/{pixel_id}
    summary: str
    response: JsonSchema
    body: type[Schema] | None = None
    example: dict[str, Any] = field(default_factory=dict)  # of the body; by default the examples of its first members
    codes: tuple[str, ...] = ()  # error codes; responses.py adds the common ones
    query: dict[str, Parameter] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)  # parameters of the query in the command of /api/docs
    values: dict[str, Any] = field(default_factory=dict)  # of the placeholders in its description
    tagged: bool = False  # True if the response has an ETag; a GET then takes If-None-Match
    many: bool = False  # True if it changes many records, which have no common version for If-Match
    also: JsonSchema = field(default_factory=dict)  # other content of the body by media type, such as files
    file: str = ""  # media type of the response, if it is a file only
    files: dict[str, str] = field(default_factory=dict)  # other media types of the response, with examples

    def __post_init__(self) -> None:
        if self.body and not self.example:
            self.example.update(first_examples(self.body, 1))

    @property
    def method(self) -> str:
        return self.route.split()[0]

    @property
    def path(self) -> str:
        return self.route.split()[1]

    @property
    def access(self) -> Access:
        match self.path.split("/")[2]:
            case "openapi.json":
                return Access.PUBLIC
            case "plans" | "plan" | "users" | "user":
                return Access.ADMINISTRATOR
            case _:
                return Access.USER

    @property
    def conditional(self) -> bool:
        return self.tagged and self.method == "GET"

    @property
    def description(self) -> str:
        return descriptions().get(self.route, "").format(**self.values)

    @property
    def arguments(self) -> list[str]:
        """The names of the parameters in the path."""
        return re.findall(r"{(\w+)}", self.path)


@dataclass(frozen=True)
class Section:
    """A section of the document. `tables` maps titles to schemas that /api/docs shows below the members."""

    name: str
    operations: tuple[Operation, ...]
    description: str = ""
    records: dict[str, JsonSchema] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)


# Error codes of resources whose number a plan limits
COUNTED = ("plan_feature", "plan_limit")
