"""The sections of resources: members, records, and the operations that most of them have."""

from typing import Any

from marshmallow import fields

from linkmgr.fields.query import PAGING
from linkmgr.openapi.model import Operation, Section, first_examples
from linkmgr.openapi.schemas import JsonSchema, changed, created, done, json_of, listing, open_values, or_null, reading
from linkmgr.resources.resource import Resource

Kind = type[Resource]
Codes = tuple[str, ...]
KINDS: list[Kind] = []  # all of section()
_KEPT = ("type", "enum", "minimum", "pattern", "items", "anyOf", "properties", "required", "additionalProperties")


def _shown(field: fields.Field[Any]) -> JsonSchema:
    """Return the schema of a member in a record: without the bounds of what may be sent."""
    schema: JsonSchema = field.json_shown if hasattr(field, "json_shown") else json_of(field)
    shown = open_values({name: value for name, value in schema.items() if name in _KEPT})
    shown["examples"] = field.metadata["examples"]
    if field.dump_only and (description := field.metadata["description"]):
        shown["description"] = description
    return or_null(shown) if field.allow_none else shown


def record_of(kind: Kind, place: str = "record") -> JsonSchema:
    """Return the schema of a record, or of one in a list or an export."""
    members = {name: _shown(kind().fields[name]) for name in kind.shown(place)}
    return {"type": "object", "properties": members, "required": list(members)}


def records_of(kind: Kind) -> dict[str, JsonSchema]:
    """Return the schemas of the record, and of those in lists and exports if they differ, by name."""
    return {name_of(kind, place): record_of(kind, place) for place in ("list", "export", "record")}


def name_of(kind: Kind, place: str = "record") -> str:
    suffix = {"list": "Listed", "export": "Exported"}.get(place, "")
    return kind.__name__ + (suffix if kind.shown(place) != kind.shown() else "")


def section(
    kind: Kind,
    title: str,
    *,
    example: Any = None,
    change: Any = None,
    codes: Codes = (),
    added: Codes = (),
    refused: Codes = (),
    paged: str = "",
    responses: dict[str, JsonSchema] | None = None,
    others: tuple[Operation, ...] = (),
    records: dict[str, JsonSchema] | None = None,
    tables: dict[str, str] | None = None,
) -> Section:
    """Return the section of a resource that has the usual operations, and `others`. One with the route of a usual one
    replaces it.

    `example` and `change` are bodies, by default with the first members. `codes` are errors of create and update,
    `added` further ones of the create, and `refused` those of the delete. `paged` is the summary of a read that has a
    list too. `responses` are those that are special, by the names of the endpoints."""
    KINDS.append(kind)
    name, row = kind.__name__, f"/api/{kind.path}/{{{kind.id_name()}}}"
    called = f"{'an' if kind.noun[0] in 'aeiouA' else 'a'} {kind.noun}"
    message = f"{kind.subject()} has been {{}} successfully."
    usual = {
        "index": listing(kind.list_key or kind.plural, name_of(kind, "list")),
        "read": reading(name),
        "add": created(name),
        "update": changed(message.format("updated"), name),
        "delete": done(message.format("deleted")),
    } | (responses or {})
    example, change = example or first_examples(kind.creates(), 3), change or {}
    add, new, changes = f"POST /api/{kind.adds()}", kind.creates(), kind.updates()
    operations = (
        Operation(f"GET /api/{kind.plural}", f"List {kind.noun}s", usual["index"], query=PAGING),
        Operation(f"GET {row}", paged or f"Read {called}", usual["read"], query=PAGING if paged else {}, tagged=True),
        Operation(add, f"Add {called}", usual["add"], new, example, (*added, *codes), tagged=True),
        Operation(f"PUT {row}/update", f"Change {called}", usual["update"], changes, change, codes, tagged=True),
        Operation(f"DELETE {row}/delete", f"Delete {called}", usual["delete"], codes=refused),
        *others,
    )
    by_route = {operation.route: operation for operation in operations}
    return Section(title, tuple(by_route.values()), kind.about, records_of(kind) | (records or {}), tables or {})
