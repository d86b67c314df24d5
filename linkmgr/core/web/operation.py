"""An operation of the API: everything that is true of it besides its path and its code.

It is declared where it is handled: `@operation(...)` stands below Flask's own decorator, and the
docstring of the handler is its summary and description. What it returns loads the body and does
what the headers of writes say. The hooks (web/auth.py), the OpenAPI document, `/api/docs` and the
tests read this object. No name of a blueprint, a view or a module has a meaning.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from inspect import cleandoc
from pathlib import Path
from typing import Any

from flask import Flask
from marshmallow import Schema
from werkzeug.routing import Rule

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import bodies
from linkmgr.core.fields.member import JsonSchema, first_examples
from linkmgr.core.fields.query import Parameter, refuse_others
from linkmgr.core.web import csv, scopes, writes
from linkmgr.core.web import request as web_request

View = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Operation:
    scope: str  # that a key needs, such as `links:create`; `admin` is for administrators only, `public` needs no key
    id: str  # in the document, such as `links.create`, with the word of its section; a page has none
    response: JsonSchema = field(default_factory=dict)  # of a success
    body: type[Schema] | None = None  # loaded before the handler, whose first argument it is
    stored: Callable[[int, int], Row] | None = None  # reads the row that an update changes (`changes_of`)
    # Codes, besides those that follow from the other facts (openapi/responses.py)
    errors: tuple[str, ...] = ()
    row: str = ""  # the table whose row `If-Match` compares
    # Finds its id, if the path has another name of the row. The handler loads the body, which
    # depends on the row.
    row_id: Callable[..., int | None] | None = None
    has_etag: bool = False  # True if the response has an ETag; a GET then takes If-None-Match
    deletes: bool = False  # True for a POST that refuses unknown parameters and members, as each DELETE does
    restricted: tuple[str, ...] = ()  # limits of restricted keys that may use it: `own_only`, `domains`
    selections: tuple[str, ...] = ()  # parameters of the query of which a restricted key must send one
    limit: tuple[int, str] | None = (
        None  # bytes of the body, and the error code of a larger one, if not the usual ones
    )
    apart: bool = False  # True if it is on the second page of its section, if there is one
    is_free: bool = False  # True if it counts for no rate limit; without a query, which makes work
    is_upload: bool = False  # True if the body is a file, which the handler receives
    query: dict[str, Parameter] = field(default_factory=dict)
    path: dict[str, Parameter] = field(default_factory=dict)  # parameters of the path that are not ids
    example: Row = field(default_factory=dict)  # of the body; by default the examples of its first members
    example_query: dict[str, str] = field(default_factory=dict)  # in the command of /api/docs
    media: JsonSchema = field(default_factory=dict)  # content of a body that is a file, by media type
    file: str = ""  # media type of the response, if it is a file only
    file_example: str = ""  # of a file that is text
    values: Row = field(default_factory=dict)  # of the names in braces in the description
    summary: str = ""
    description: str = ""

    def __call__(self, view: Callable[..., Any]) -> View:
        """Return the view as it is registered: with a valid body, and with the headers of
        writes."""
        summary, _, description = cleandoc(view.__doc__ or "").partition("\n\n")
        description = description.format(**self.values) if self.values else description
        stated = replace(self, summary=self.summary or summary.removesuffix("."), description=description)

        @wraps(view)
        def handle(**ids: Any) -> Any:
            request = web_request.current()
            environ = request.environ
            # Without these headers, this is all that a request costs.
            if (
                "HTTP_IDEMPOTENCY_KEY" in environ or "HTTP_IF_MATCH" in environ
            ) and request.method in writes.METHODS:
                return writes.carry_out(partial(stated.run, view, ids))
            return stated.run(view, ids)

        handle.operation = stated  # type: ignore[attr-defined]
        return handle

    def run(self, view: View, ids: Row) -> Any:
        if self.body is None or self.row_id:
            if web_request.current().method == "DELETE":
                refuse_others("member", bodies.parse_if_any(), ())
            return view(**ids)
        if self.deletes:
            refuse_others("member", bodies.parse(), bodies.members_of(self.body))
        if self.stored is None:
            return view(bodies.load(self.body, bodies.parse()), **ids)
        read = partial(self.stored, web_request.current().user_id, *ids.values())
        return view(bodies.changes_of(self.body, read), **ids)

    def as_csv(self, example: str) -> "Operation":
        """Return the operation with the same rows as a CSV, which has a path of its own, so that
        each operation has one type of response."""
        query = {name: parameter for name, parameter in self.query.items() if not parameter.selects_media}
        return replace(
            self, id=f"{self.id}Csv", response={}, file=csv.MIMETYPE, file_example=example, query=query
        )

    @property
    def is_for_administrators(self) -> bool:
        return self.scope == scopes.ADMIN

    @property
    def body_example(self) -> Row:
        return self.example or (first_examples(self.body, 1) if self.body else {})


operation = Operation  # as a decorator


def prose(module: str, **values: Any) -> str:
    """Return the text beside a module: what the documents say of a section. Names in braces are
    values."""
    return Path(module).with_suffix(".md").read_text().strip().format(**values)


@dataclass(frozen=True, eq=False)
class Section:
    """A section of the document: the operations whose ids begin with its word."""

    word: str
    title: str
    description: str
    records: Callable[[], dict[str, JsonSchema]] = dict  # schemas by name; those of keys need the application
    # Schemas that /api/docs shows below the members, by title
    tables: dict[str, str] = field(default_factory=dict)
    nouns: dict[str, str] = field(default_factory=dict)  # of ids in paths, if they are not named like them
    apart: "Section | None" = None  # the page of /api/docs that has those operations which are `apart`
    # The records that receivers get, by the type of the event
    events: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Route:
    method: str
    rule: Rule
    operation: Operation

    @property
    def path(self) -> str:
        return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", self.rule.rule)

    @property
    def arguments(self) -> list[str]:
        return re.findall(r"{(\w+)}", self.path)


def routes(app: Flask) -> list[Route]:
    views: dict[str, Any] = app.view_functions
    return [
        Route(method, rule, views[rule.endpoint].operation)
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/")
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]


def init_app(app: Flask) -> None:
    """Stop the start if a route of the API declares no operation. Call this after all routes are
    registered."""
    routes(app)


def body_limits(app: Flask) -> dict[str, int]:
    """Return the bytes of the body by the paths of operations with a limit of their own."""
    return {route.rule.rule: route.operation.limit[0] for route in routes(app) if route.operation.limit}
