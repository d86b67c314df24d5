"""Sections and operations of words that do not declare theirs yet."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from marshmallow import Schema

from linkmgr.fields.member import JsonSchema
from linkmgr.fields.query import Parameter
from linkmgr.web.operation import Section


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
    many: bool = False
    also: JsonSchema = field(default_factory=dict)  # other content of the body by media type, such as files
    file: str = ""  # media type of the response, if it is a file only
    files: dict[str, str] = field(default_factory=dict)  # other media types of the response, with examples
    path_parameters: dict[str, Parameter] = field(default_factory=dict)

    @property
    def method(self) -> str:
        return self.route.split()[0]

    @property
    def path(self) -> str:
        return self.route.split()[1]

    @property
    def description(self) -> str:
        return descriptions().get(self.route, "").format(**self.values)


class Listed(Section):
    """A section with its operations."""

    operations: tuple[Operation, ...]


def listed(word: str, title: str, operations: tuple[Operation, ...], *args: Any, **kwargs: Any) -> Section:
    section = Listed(word, title, *args, **kwargs)
    object.__setattr__(section, "operations", operations)
    return section


# Error codes of resources whose number a plan limits
COUNTED = ("plan_feature", "plan_limit")
