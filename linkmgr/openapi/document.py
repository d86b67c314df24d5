"""Builder of the OpenAPI document."""

import re
from collections.abc import Iterator

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask
from marshmallow import Schema
from werkzeug.routing import Rule

from linkmgr.openapi import responses, types
from linkmgr.openapi.model import Access, Operation, Resource
from linkmgr.openapi.operations import RECORDS, RESOURCES
from linkmgr.openapi.schemas import ID, JsonSchema
from linkmgr.repository.channels import ITEMS
from linkmgr.repository.visits import MAX_LABELS, OTHER

VERSION = "3"  # of the specification (section 9)
_TITLES = {"bio": "bio page", "qr": "QR code", "splash": "splash page"}  # of parameters that are not called like this
PAGES = ("docs.page",)  # endpoints under /api that are not operations

DESCRIPTION = f"""\
Manages short links, QR codes, bio pages, campaigns, channels, branded domains, splash pages, overlays and pixels.

Send your API key with every request, in the header `Authorization: Bearer API_KEY`. Bodies are JSON objects with the
header `Content-Type: application/json`. A success has the status 200 and `error` 0. An error has `error` 1, a sentence
in `message`, and a stable `code` for programs.

- **Bodies.** `null` means not sent. `""` means not sent on create; on update it clears an optional text. Members that
  are not named here are ignored. JSON types are not converted, unless a member says so. An update changes only the
  members that it sends.
- **Lists** are sorted newest first. `result` is the total, `nextpage` is 0 on the last page. A page past the end is
  empty.
- **Ids.** Another user's id and an id that does not exist give the same 404.
- **Times** are UTC.
- **Rate limit.** Every response has the headers `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`
  (an epoch second). A user has one budget for all operations. Requests without a valid key share the budget of their IP
  address (IPv6: of its /64 network). `/api/docs` and `/api/openapi.json` need no key; with a valid key, requests for
  them count for its user.
- **Retries.** Errors 429 and 503 have the header `Retry-After`: the seconds after which you can try again. The reasons
  for a 503 are the database (unavailable, busy or to be upgraded), too many images being rendered or too many URLs
  being fetched at the same time, and API keys that were encrypted with another secret. `code` says which one.
- **Statistics** list the ten largest labels of a kind, such as countries. A link or QR code has at most {MAX_LABELS:,}
  labels of a kind; visits with further ones are counted as `{OTHER}`. HEAD requests and prefetching are not visits.
  Bots, previews, HTTP libraries and requests without a user agent are stored separately and are in none of these
  numbers. IP addresses are not stored.
- **Unique visitors.** A visitor is a digest of the link, the IP address, the user agent and a key. The operator chooses
  how long it is the same: for ever (`LINKMGR_VISITOR_SALT=lasting`), until the end of the month (`monthly`, the
  default) or until the end of the day (`daily`), in UTC. After that, a visitor who returns counts as another unique
  one: `uniqueClicks` then is the sum of the unique visitors of each month or day. With `LINKMGR_RESPECT_DNT=1`, visits
  whose browser sends `DNT: 1` or `Sec-GPC: 1` are clicks without a visitor, referrer, country and city.
- **Countries** are those to which the internet registries assigned the IP addresses, unless the operator configures a
  database (`LINKMGR_GEOIP_DATABASE`); the README says where to get one. Private addresses are `Unknown`. Cities need
  such a database."""


def _name(schema: type[Schema] | Schema) -> str:
    kind = schema if isinstance(schema, type) else type(schema)
    return kind.__name__


def _body(operation: Operation) -> JsonSchema:
    assert operation.body
    content: JsonSchema = {"schema": operation.body, "example": operation.example}
    required = any(field.required for field in operation.body().fields.values())
    return {"required": required, "content": {"application/json": content}}


def path_of(rule: Rule) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


def rules(app: Flask) -> dict[tuple[str, str], Rule]:
    """Return the route of each operation by its method and path."""
    return {
        (method, path_of(rule)): rule
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/") and rule.endpoint not in PAGES
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }


def _path_parameters(operation: Operation) -> Iterator[JsonSchema]:
    for name in operation.arguments:
        schema = {"type": "string", "enum": list(ITEMS)} if name == "type" else ID
        kind = name.removesuffix("_id")
        description = "The kind of the item." if name == "type" else f"The id of the {_TITLES.get(kind, kind)}."
        yield {"name": name, "in": "path", "required": True, "description": description, "schema": schema}


def _operation_id(rule: Rule, operation: Operation) -> str:
    """Return the name of the endpoint, with a suffix for the second method of one."""
    suffix = "_by_post" if (rule.endpoint, operation.method) == ("account.read", "POST") else ""
    return f"{rule.endpoint.replace('.', '_')}{suffix}"


def _entry(resource: Resource, operation: Operation, operation_id: str) -> JsonSchema:
    parameters = [*_path_parameters(operation), *operation.query]
    return {
        "operationId": operation_id,
        "summary": operation.summary,
        **({"description": operation.description} if operation.description else {}),
        "tags": [resource.name],
        **({"parameters": parameters} if parameters else {}),
        **({"requestBody": _body(operation)} if operation.body else {}),
        **({"security": []} if operation.access is Access.PUBLIC else {}),
        "responses": responses.of(operation),
    }


def _links(resource: Resource, ids: dict[Operation, str]) -> JsonSchema:
    """Return the OpenAPI links from a create to the operations whose only argument is its id."""
    source = "$response.body#/data/id" if resource.name == "Users" else "$response.body#/id"
    return {
        ids[operation]: {"operationId": ids[operation], "parameters": dict.fromkeys(operation.arguments, source)}
        for operation in resource.operations
        if len(operation.arguments) == 1
    }


def _empty(base_url: str) -> APISpec:
    """Return a document without operations."""
    plugin = MarshmallowPlugin(schema_name_resolver=_name)
    spec = APISpec(
        "linkmgr",
        VERSION,
        "3.1.0",
        [plugin],
        info={"description": DESCRIPTION},
        servers=[{"url": base_url}],
        security=[{"key": []}],
        tags=[
            {"name": resource.name, **({"description": resource.description} if resource.description else {})}
            for resource in RESOURCES
        ],
    )
    assert plugin.converter
    plugin.converter.add_attribute_function(types.property_of)  # type: ignore[no-untyped-call]
    spec.components.security_scheme("key", {"type": "http", "scheme": "bearer"})
    return spec


def build(app: Flask, base_url: str) -> JsonSchema:
    spec = _empty(base_url)
    responses.add_components(spec.components)
    for name, record in RECORDS.items():
        spec.components.schema(name, record)
    routes = rules(app)
    for resource in RESOURCES:
        ids = {
            operation: _operation_id(routes[operation.method, operation.path], operation)
            for operation in resource.operations
        }
        for operation, operation_id in ids.items():
            entry = _entry(resource, operation, operation_id)
            if operation.path.endswith("/add"):
                entry["responses"]["200"]["links"] = _links(resource, ids)
            spec.path(operation.path, operations={operation.method.lower(): entry})
    return dict(spec.to_dict())
