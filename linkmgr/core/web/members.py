"""The parameter `fields` of reads and lists: their records then have only some of their members.

A record is an object with an `id`. The declared response of an operation says where it has records, so each operation
that has some takes the parameter.
"""

import re
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
from flask import Flask, Response, after_this_request

from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.query import Parameter, values_of
from linkmgr.core.web import operation
from linkmgr.core.web import request as web_request
from linkmgr.core.web.operation import Operation

NAME = "fields"
FIELDS = Parameter(
    "The members that a record has in the response, besides its `id`. Without it, all.",
    lambda _name, text: set(filter(None, text.split(","))),
    is_list=True,
    type="array",
    items={"type": "string"},
    examples=[["id", "date"]],
)
Places = Any  # of records in a response: True for a record, a list of one element, a dictionary by member, or None


def _places(schema: JsonSchema, records: set[str]) -> Places:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2] in records or None
    if "items" in schema:
        return [inner] if (inner := _places(schema["items"], records)) else None
    members = [member for part in (schema, *schema.get("allOf", ())) for member in part.get("properties", {}).items()]
    return {name: inner for name, member in members if (inner := _places(member, records))} or None


def _without(dropped: frozenset[str], value: Any, places: Places) -> Any:
    match places:
        case True:
            return {name: member for name, member in value.items() if name not in dropped}
        case [inner]:
            return [_without(dropped, element, inner) for element in value]
        case _:
            kept = {name: _without(dropped, value[name], inner) for name, inner in places.items() if name in value}
            return value | kept


def select(stated: Operation) -> None:
    """Leave out the members of records that the request does not name."""
    if not stated.members or not (names := values_of({NAME: FIELDS})[NAME]):
        return
    if not names <= stated.members:
        choices = ", ".join(sorted(stated.members))
        raise invalid(f"{NAME} must be from the list {choices}, separated by commas", "unknown_value")
    web_request.current().dropped = stated.members - names - {"id"}
    after_this_request(partial(_reduce, stated.places))


def _reduce(places: Places, response: Response) -> Response:
    """Encode the response again. Those that are streamed are made without these members (web/export.py)."""
    if response.is_json and not response.is_streamed:
        content = _without(web_request.current().dropped, orjson.loads(response.get_data()), places)
        response.set_data(orjson.dumps(content))
    return response


def init_app(app: Flask, schemas: dict[str, JsonSchema]) -> None:
    """Add the parameter to the operations that read records. Call this after all routes are registered."""
    records = {name: schema["properties"] for name, schema in schemas.items() if "id" in schema.get("properties", ())}
    views: dict[str, Any] = app.view_functions
    reads = {route.path: route for route in operation.routes(app) if route.method == "GET"}
    for path, route in reads.items():
        stated = route.operation
        response = reads.get(path.removesuffix(".csv"), route).operation.response  # a CSV has the same rows
        if places := _places(response, set(records)):
            names = re.findall(r'schemas/(\w+)"', orjson.dumps(response).decode())
            members = frozenset(member for name in names for member in records.get(name, ()))
            facts = {"query": stated.query | {NAME: FIELDS}, "members": members, "places": places}
            views[route.rule.endpoint].operation = replace(stated, **facts)
