"""Builder of the OpenAPI document."""

import re
from collections import defaultdict
from collections.abc import Container, Iterator
from typing import Any

from flask import Flask
from werkzeug.routing import Rule

from linkmgr.fields.webhooks import TYPES
from linkmgr.openapi import responses, usual
from linkmgr.openapi.bodies import body_of, with_nested
from linkmgr.openapi.model import Access, Operation, Section
from linkmgr.openapi.operations import OPERATIONS, RECORDS, SECTIONS
from linkmgr.openapi.schemas import ID, JsonSchema, record, ref, text
from linkmgr.repository.channels import ITEMS
from linkmgr.repository.idempotency import MAX_BYTES, MAX_NUMBER
from linkmgr.repository.rollups import MAX_LABELS, OTHER
from linkmgr.settings import RELEASE
from linkmgr.web import conditional_writes, idempotency, preconditions, scopes

_TITLES = {"bio": "bio page", "qr": "QR code", "splash": "splash page"}  # of parameters whose name differs
PAGES = ("docs.page",)  # endpoints under /api that are not operations

IF_NONE_MATCH: JsonSchema = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of the response that you have. If it is current, the response is a 304 without a body.",
    "schema": {"type": "string"},
}

DESCRIPTION = f"""\
Manages short links, QR codes, bio pages, campaigns, channels, branded domains, splash pages, overlays and pixels.

Send your API key with every request, in the header `Authorization: Bearer API_KEY`. Bodies are JSON objects with the
header `Content-Type: application/json`; a JSON object is also read under any other content type. A success has the
status 200 and `error` 0. An error has `error` 1, a sentence in `message`, and a stable `code` for programs.

- **Bodies.** `null` means not sent. `""` means not sent on create; on update it clears an optional text. Members that
  are not named here are ignored. JSON types are not converted, unless a member says so. An update changes only the
  members that it sends.
- **Warnings.** The response to a create or an update has `warnings`, an array of sentences for people, if a value was
  accepted that cannot have the effect that was probably meant: a country, device or language that does not exist, a WPA
  password of the wrong length, an ignored element of an array, a plan that ends in the past, or a member with the wrong
  name (`The member 'alias' is unknown and was ignored. Did you mean 'custom'?`). Members that a read shows cause no
  warning, so a record can be sent back. The exception is a changed value of a member that an update cannot change, such
  as the `type` of a pixel.
- **Lists** are sorted newest first. `result` is the total, `nextpage` is 0 on the last page. A page past the end is
  empty.
- **Reading a whole list.** `next` is a cursor: send it as `after` to get the rows after it, until a response has no
  `next`. A page by cursor takes equally long anywhere in the list, and each row is listed once, even if rows are added
  or deleted meanwhile. With `page`, rows then move to other pages. The two exclude each other: a response to `after`
  has no `currentpage` and no `nextpage`.
- **Read, change, write back.** A single read shows every member of the body under its name, in the form in which it is
  stored: with URLs in ASCII, times in UTC, and countries, devices and languages in lower case. Passwords are never
  shown. An update ignores the members that it cannot change, so you can send back the record that you read. The
  response to an update has the record as its read shows it.
- **ETag.** A single read and an update respond with the version of the record in the header `ETag`. Send it in
  `If-None-Match` with the next read: if nothing has changed, the statistics included, the response is a 304 without a
  body. The read of a channel also has its items, so use the ETag of a read there: that of an update causes no 304.
- **Scoped keys.** `POST /api/key/add` creates further keys, each with only the scopes that its program needs.
  A key can also be limited to some domains, to the rows that it creates, and to some IP addresses. Each operation names
  its scope. A change of a key, a user or a plan has effect within a second.
- **Ids.** Another user's id and an id that does not exist give the same 404.
- **Paths.** The 404 of an unknown path names the operation that was probably meant: `/api/links` names `/api/urls`.
- **Times** are UTC.
- **Rate limit.** Every response has the headers `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`
  (an epoch second). `RateLimit-Policy: "default";q=30;w=60` and `RateLimit: "default";r=29;t=42` are the same in the
  form of draft-ietf-httpapi-ratelimit-headers-11: `q` requests in `w` seconds, of which `r` are left for `t` seconds. A
  user has one budget for all operations. While 64 requests and more are left, the service counts some in advance, so
  that `r` may fall in steps. Requests without a valid key share the budget of their IP address (IPv6: of
  its /64 network). `/api/docs` and `/api/openapi.json` need no key; with a valid key, requests for them count for its
  user.
- **Browsers.** Pages of any origin may call the API (CORS), and read the headers above. Cookies are not read; send the
  key. Anyone who can open the page can read a key in it. Preflights are not counted: their headers report 0 remaining.
- **Retries.** Errors 429 and 503 have the header `Retry-After`: the seconds after which you can try again. The reasons
  for a 503 are the database (unavailable, busy, too slow or to be upgraded), too many images, URLs, exports or uploads
  at the same time, and API keys that were encrypted with another secret. `code` says which one.
- **Safe to repeat.** A request whose response was lost may have been carried out. Send each POST, PUT and DELETE with
  the header `Idempotency-Key` and a new random value, such as a UUID, and repeat it with the same value until you get a
  response: it is carried out once. For 24 hours, each repetition gets the same status and body, with the header
  `Idempotency-Replayed: true`. Of a response above 16 KiB when compressed, a repetition gets the status, the short
  members, the current record, and a sentence in `warnings`. The oldest of more than {MAX_NUMBER:,} responses of a user,
  or of more than {MAX_BYTES >> 20} MiB, are dropped before. Only 401, 409, 412, 429 and 5xx are not stored: after them,
  a repetition is a new attempt. Another method, URL or body under the same key is a 422.
- **Safe to change.** To change only what you have read, send its `ETag` in the header `If-Match` of a PUT or DELETE. If
  the record has changed meanwhile, the response is a 412 and nothing changes: read it again, repeat your change, and
  send the new ETag, under a new key. `*` matches any version. On POST, the header is ignored. The channels that a
  record is in are not part of its version. After a campaign, a splash page or an overlay is deleted, its links get new
  versions within seconds, when their references are removed.
- **Statistics** list the ten largest labels of a kind, such as countries. A link or QR code has at most {MAX_LABELS:,}
  labels of a kind; visits with further ones are counted as `{OTHER}`. HEAD requests and prefetching are not visits.
  Bots, previews, HTTP libraries and requests without a user agent are stored separately and are in none of these
  numbers. IP addresses are not stored.
- **Unique visitors.** A visitor is a digest of the link, the IP address (IPv6: its /64 network), the user agent and a
  key. The operator chooses how long it is the same: forever (`LINKMGR_VISITOR_SALT=lasting`), until the end of the
  month (`monthly`, the default) or until the end of the day (`daily`), in UTC. After that, a visitor who returns
  counts as another unique one: `uniqueClicks` then is the sum of the unique visitors of each month or day. With
  `LINKMGR_RESPECT_DNT=1`, visits whose browser sends `DNT: 1` or `Sec-GPC: 1` are clicks without a visitor, referrer,
  country and city.
- **Countries** are those to which the internet registries assigned the IP addresses, unless the operator configures a
  database (`LINKMGR_GEOIP_DATABASE`); the README says where to get one. Private addresses are `Unknown`. Cities need
  such a database."""


# The headers of writes, by the methods that have them
_HEADERS: tuple[tuple[JsonSchema, Container[str]], ...] = (
    (
        {
            "name": idempotency.HEADER,
            "in": "header",
            "description": "Makes the request safe to repeat: a new random value, such as a UUID.",
            "schema": text(
                "8e03978e-40d5-43dd-bc93-6894a57f9324", maxLength=idempotency.MAX_LENGTH, pattern=idempotency.PATTERN
            ),
        },
        conditional_writes.METHODS,
    ),
    (
        {
            "name": preconditions.HEADER,
            "in": "header",
            "description": "The ETag that you have read. If the record has changed since, nothing is changed.",
            "schema": text('"4711-5d41402abc4b2a76"', pattern=preconditions.PATTERN),
        },
        preconditions.METHODS,
    ),
)


def _body(operation: Operation) -> JsonSchema:
    assert operation.body
    content: JsonSchema = {"schema": ref(operation.body.__name__), "example": operation.example}
    required = any(field.required for field in operation.body().fields.values())
    return {"required": required, "content": {"application/json": content, **operation.also}}


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


# Names as authors of clients expect them, by blueprint and by the names of view functions.
_CLIENTS = {"urls": "links", "default_key": "keys", "openapi": "document"}
_METHODS = {
    "index": "list", "add": "create", "read": "get", "urls.visits": "listVisits", "qr.visits": "listVisits",
    "overlay.answers": "listAnswers", "stats.read": "query", "webhooks.rotate": "rotateSecret",
    "webhooks.deliveries": "listDeliveries", "webhooks.events": "listEvents", "imports.errors": "listErrors",
    "users.login_link": "createLoginLink", "openapi.document": "get", "export.urls": "links",
}  # fmt: skip


def _operation_id(rule: Rule, operation: Operation) -> str:
    """Return a name such as `links.create`."""
    blueprint, view = rule.endpoint.split(".")
    first, *others = view.split("_")
    name = _METHODS.get(rule.endpoint) or _METHODS.get(view) or first + "".join(word.title() for word in others)
    suffix = "ByPost" if (rule.endpoint, operation.method) == ("account.read", "POST") else ""
    return f"{_CLIENTS.get(blueprint, blueprint)}.{name}{suffix}"


def _with_formats(schema: Any) -> Any:
    """Return a part of the document whose integers have 64 bits, but for `limit` and `page`, which are clamped."""
    match schema:
        case dict():
            is_long = schema.get("type") == "integer" and schema.keys().isdisjoint({"enum", "default"})
            return {name: _with_formats(value) for name, value in schema.items()} | (
                {"format": "int64"} if is_long else {}
            )
        case list() | tuple():
            return [_with_formats(value) for value in schema]
        case _:
            return schema


def _events() -> JsonSchema:
    """Return the section `webhooks`: what receivers get, by the type of the event."""
    kinds = {"link": "Link", "qr": "QrCode", "import": "Import", **{kind.path: kind.__name__ for kind in usual.KINDS}}

    def payload(name: str) -> JsonSchema:
        kind, _, change = name.partition(".")
        data = (
            ref(kinds[kind]) if kind in kinds and change in ("created", "updated", "finished") else {"type": "object"}
        )
        return record(type=text(name), timestamp=text("2026-11-21T09:30:00Z", format="date-time"), data=data)

    return {
        name: {
            "post": {
                "operationId": f"receive.{name}",
                "summary": f"An event {name}",
                "requestBody": {"content": {"application/json": {"schema": payload(name)}}},
                "responses": {"2XX": {"description": "Received. Other responses cause another delivery."}},
            }
        }
        for name in TYPES
    }


def _entry(section: Section, operation: Operation, operation_id: str, rule: Rule) -> JsonSchema:
    headers = [
        {"$ref": f"#/components/parameters/{header['name']}"}
        for header, methods in _HEADERS
        if operation.method in methods and not (operation.many and header["name"] == preconditions.HEADER)
    ]
    headers += [IF_NONE_MATCH] if operation.conditional else []
    is_public = operation.access is Access.PUBLIC
    parameters = [*_path_parameters(operation), *operation.query, *headers]
    return {
        "operationId": operation_id,
        "summary": operation.summary,
        **({"description": operation.description} if operation.description else {}),
        "tags": [section.name],
        **({"parameters": parameters} if parameters else {}),
        **({"requestBody": _body(operation)} if operation.body else {}),
        "security": [] if is_public else [{"key": [scopes.of(rule.endpoint, operation.method)]}],
        "responses": responses.of(operation),
    }


def _links(section: Section, ids: dict[Operation, str]) -> JsonSchema:
    """Return the OpenAPI links from a create to the operations whose only argument is its id."""
    source = "$response.body#/data/id" if section.name == "Users" else "$response.body#/id"
    return {
        ids[operation]: {"operationId": ids[operation], "parameters": dict.fromkeys(operation.arguments, source)}
        for operation in section.operations
        if len(operation.arguments) == 1
    }


def _paths(app: Flask) -> JsonSchema:
    routes, paths = rules(app), defaultdict[str, JsonSchema](dict)
    for section in SECTIONS:
        ids = {
            operation: _operation_id(routes[operation.method, operation.path], operation)
            for operation in section.operations
        }
        for operation, operation_id in ids.items():
            entry = _entry(section, operation, operation_id, routes[operation.method, operation.path])
            if operation.path.endswith("/add"):
                entry["responses"]["200"]["links"] = _links(section, ids)
            paths[operation.path][operation.method.lower()] = entry
    return dict(paths)


def _schemas() -> JsonSchema:
    bodies = {schema for operation in OPERATIONS if operation.body for schema in with_nested(operation.body)}
    return RECORDS | responses.errors() | {schema.__name__: body_of(schema) for schema in bodies}


def build(app: Flask, base_url: str) -> JsonSchema:
    about = "An API key. The names listed with it are scopes: a key created with POST /api/key/add needs them."
    document: JsonSchema = _with_formats(
        {
            "openapi": "3.1.0",
            "info": {"title": "linkmgr", "version": RELEASE, "description": DESCRIPTION},
            "servers": [{"url": base_url}],
            "security": [{"key": []}],
            "tags": [{"name": section.name, "description": section.description} for section in SECTIONS],
            "paths": _paths(app),
            "webhooks": _events(),
            "components": {
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": about}},
                "headers": responses.headers(),
                "parameters": {header["name"]: header for header, _ in _HEADERS},
                "responses": responses.shared(),
                "schemas": _schemas(),
            },
        }
    )
    return document
