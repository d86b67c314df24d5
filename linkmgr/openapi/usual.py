"""The sections of resources: members, records, and the operations that most of them have."""

from typing import Any

from linkmgr.fields.member import JsonSchema, first_examples
from linkmgr.fields.query import PAGING
from linkmgr.openapi.model import Operation, listed
from linkmgr.resources.resource import Resource
from linkmgr.resources.shapes import changed, created, done, listing, reading, records_of
from linkmgr.web.operation import Section

Kind = type[Resource]
Codes = tuple[str, ...]
KINDS: list[Kind] = []  # all of section()


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
    word: str = "",
    nouns: dict[str, str] | None = None,
    events: dict[str, str] | None = None,
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
        "index": listing(kind.list_key or kind.plural, kind),
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
    return listed(
        word or kind.plural,
        title,
        tuple(by_route.values()),
        kind.about,
        lambda: records_of(kind) | (records or {}),
        tables or {},
        nouns or {},
        events or {},
    )
