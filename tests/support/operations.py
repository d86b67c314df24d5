"""The API operations as calls, derived from linkmgr/openapi/operations."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marshmallow import Schema

from linkmgr.openapi.model import Access, Operation
from linkmgr.openapi.operations import OPERATIONS
from linkmgr.repository.channels import ITEMS

ITEM = {"links": "link", "bio": "bio", "qr": "qr"}  # maps item types to the rows of tests/support/factories.py


def examples(schema: type[Schema]) -> dict[str, Any]:
    return {name: field.metadata["examples"][0] for name, field in schema().fields.items()}


@dataclass(frozen=True)
class Call:
    """An operation with the `type` in its path filled in."""

    operation: Operation
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def method(self) -> str:
        return self.operation.method

    @property
    def example(self) -> dict[str, Any] | None:
        return self.operation.example or None

    @property
    def rows(self) -> list[str]:
        """Return the kinds of rows in the path, named as in tests/support/factories.py."""
        return re.findall(r"{(\w+)_id}", self.path)

    def path_of(self, ids: list[int]) -> str:
        remaining = iter(ids)
        return re.sub(r"{\w+}", lambda _: str(next(remaining)), self.path)

    def bodies(self) -> list[dict[str, Any] | None]:
        """Return a body of the required members (the first member if none is required), and one of all members."""
        if self.operation.body is None:
            return [None]
        complete, fields = self.complete(), self.operation.body().fields
        least = {name: complete[name] for name, field in fields.items() if field.required}
        return [least or dict([next(iter(complete.items()))]), complete]

    def complete(self) -> dict[str, Any]:
        schema = self.operation.body
        assert schema
        return examples(schema)


def _calls() -> Iterator[Call]:
    for operation in OPERATIONS:
        if "{type}" in operation.path:
            for kind in ITEMS:
                path = operation.path.replace("{type}", kind).replace("{item_id}", f"{{{ITEM[kind]}_id}}")
                yield Call(operation, path)
        else:
            yield Call(operation, operation.path)


CALLS = list(_calls())
KEYED = [call for call in CALLS if call.operation.access is not Access.PUBLIC]
