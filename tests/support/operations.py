"""The API operations as calls, derived from the routes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marshmallow import Schema

from linkmgr.core.web.operation import Operation, Route
from linkmgr.core.web.scopes import PUBLIC
from linkmgr.repository.channels import ITEMS
from tests.support.document import operations

CONVERSIONS = "/api/conversions"  # the body names a link
ITEM = {"links": "link", "bio": "bio", "qr": "qr"}  # maps item types to the rows of tests/support/factories.py


def examples(schema: type[Schema]) -> dict[str, Any]:
    return {name: field.metadata["examples"][0] for name, field in schema().fields.items()}


@dataclass(frozen=True)
class Call:
    """An operation with the `type` in its path filled in."""

    route: Route
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def operation(self) -> Operation:
        return self.route.operation

    @property
    def method(self) -> str:
        return self.route.method

    @property
    def rows(self) -> list[str]:
        """Return the types of rows in the path, named as in tests/support/factories.py."""
        return re.findall(r"{(\w+)_id}", self.path)

    @property
    def upload(self) -> dict[str, Any]:
        """Return a file for an operation that takes one."""
        if not self.operation.is_upload:
            return {}
        text = "Click\nunknown" if self.path.startswith(CONVERSIONS) else "Long URL\nhttps://example.com/"
        return {"data": text, "content_type": "text/csv"}

    def example_of(self, ids: list[int]) -> dict[str, Any] | None:
        """Return the example of the body, which names the first row if the path has none."""
        named = {"link": ids[0]} if ids and (self.method, self.path) == ("POST", CONVERSIONS) else {}
        return self.operation.body_example | named or None

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
    for route in operations():
        if "{type}" in route.path:
            for type_ in ITEMS:
                path = route.path.replace("{type}", type_).replace("{item_id}", f"{{{ITEM[type_]}_id}}")
                yield Call(route, path)
        else:
            path = route.path
            for name, stated in route.operation.path.items():
                path = path.replace(f"{{{name}}}", str(stated.json["examples"][0]))
            yield Call(route, path)


CALLS = list(_calls())
KEYED = [call for call in CALLS if call.operation.scope != PUBLIC]
READS = [call for call in KEYED if call.method == "GET"]  # which can share their rows
