"""/api/imports"""

from collections.abc import Generator, Iterator

import orjson
from flask import Blueprint, Response, request

from linkmgr.fields.base import Choice, Target, Text
from linkmgr.fields.bodies import New, body, load
from linkmgr.fields.member import member
from linkmgr.fields.problems import invalid
from linkmgr.fields.query import paging
from linkmgr.fields.urls import MAX_URL
from linkmgr.imports import requests, services
from linkmgr.imports.requests import File, Service
from linkmgr.imports.rows import MEMBERS
from linkmgr.repository import import_rows, imports
from linkmgr.request import request as web_request
from linkmgr.web import csv as web_csv
from linkmgr.web import export as web_export
from linkmgr.web import uploads
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok, versioned

bp = Blueprint("imports", __name__)

RULES = ("skip", "rename", "update")  # for aliases that are in use
_MAX_TOKEN = 1000
_PAGE = 100  # failed rows that are read at once; each has at most 128 KiB


class ServiceToRead(New):
    """A service whose links are read. A body without these members is a file."""

    source = member(Choice(services.SERVICES, required=True), "The kind of the service.", "bitly")
    address = member(Target(MAX_URL), "The URL of the service. Bitly needs none.", "https://s.example.com")
    token = member(
        Text(_MAX_TOKEN, required=True),
        "A key of its API. It is stored encrypted until the import ends.",
        "4dc54f6c1b",
    )


class ImportRules(New):
    """Parameters of the query, or fields of a form."""

    source = member(
        Choice(("auto", *requests.SOURCES), load_default="auto"),
        "The service that a file comes from, if it is not recognized by its columns.",
        "auto",
    )
    mapping = member(
        Text(10_000, multiline=True, load_default="{}"),
        "A JSON object with the name of the column for each member. The members are those of the body of "
        "`POST /api/url/add`, `tags`, `created` and `clicks`.",
        '{"url": "Target", "custom": "Name"}',
    )
    on_conflict = member(
        Choice(RULES, load_default=RULES[0]),
        "The rule for a row whose alias one of your links has: `skip` keeps the link, `rename` creates another one "
        "with the alias and a number, `update` writes the members of the row to the link. With `skip` and `update`, an "
        "alias of another user is a failure. With `skip`, so is the alias of an earlier row with another URL. A link "
        "moves here if you do not have its domain. If its alias then is the one of a link of another host, the row is "
        "a failure with all rules, or skipped if both links have the same URL.",
        RULES[0],
    )
    dry_run = member(Choice(("0", "1"), load_default="0"), "`1`: store nothing.", "0")


def parse_mapping(text: str) -> dict[str, str]:
    try:
        mapping = orjson.loads(text)
    except orjson.JSONDecodeError:
        mapping = None
    if not isinstance(mapping, dict) or not all(isinstance(column, str) for column in mapping.values()):
        raise invalid('mapping must be a JSON object such as {"url": "Target"}')
    if unknown := mapping.keys() - set(MEMBERS):
        raise invalid(f"mapping must have only {', '.join(MEMBERS)}; remove {', '.join(unknown)}")
    if any("\0" in column for column in mapping.values()):
        raise invalid("mapping must name columns without NUL characters")
    return mapping


def _is_service() -> bool:
    """Return True if the body names a service to read. Any other JSON is a file."""
    request = web_request.current()
    if not request.is_json or not 0 < (request.content_length or 0) <= web_request.MAX_BODY:
        return False
    try:
        members = orjson.loads(request.get_data())
    except orjson.JSONDecodeError:
        return False
    return isinstance(members, dict) and bool(members.keys() & {"source", "address", "token"})


def _service(loaded: Json) -> Service:
    if loaded["source"] != "bitly" and "address" not in loaded:
        raise invalid("address is required for this source", "required")
    return Service(loaded["source"], loaded.get("address", ""), loaded["token"])


def service(members: Json) -> Service:
    """Return the service that a form names. The console uses this."""
    return _service(load(ServiceToRead, {name: members[name] for name in members.keys() & ServiceToRead().fields}))


def rules_of(members: Json) -> Json:
    return load(ImportRules, {name: members[name] for name in ImportRules().fields if name in members})


def recognize(upload: uploads.Upload, rules: Json) -> File:
    """Return the uploaded file and its form. The console uses this too."""
    source = None if rules["source"] == "auto" else rules["source"]
    mapping = parse_mapping(rules["mapping"])
    return requests.recognize(upload.file, upload.size, upload.name, source, mapping)


@bp.post("/imports")
def add() -> Json:
    is_form = request.mimetype == "multipart/form-data"
    rules = rules_of(request.args.to_dict() | (uploads.receive().members if is_form else {}))
    origin = _service(body(ServiceToRead)) if _is_service() else recognize(uploads.receive(), rules)
    if rules["dry_run"] == "1":
        return ok(data=requests.preview(user_id(), origin))
    return ok("Import has been queued.", id=requests.add(user_id(), origin, rules["on_conflict"]))


@bp.get("/imports")
def index() -> Json:
    page = imports.index(user_id(), **paging())
    for record in page.rows:
        del record["version"]
    return listing("imports", page)


@bp.get("/imports/<id:import_id>")
def read(import_id: int) -> Response:
    record = imports.read(user_id(), import_id)
    return versioned(record.pop("version"), data=record)


@bp.get("/imports/<id:import_id>/errors")
def errors(import_id: int) -> Response:
    imports.read(user_id(), import_id)
    web_csv.vary_by_accept()
    if request.accept_mimetypes.best_match([web_csv.MIMETYPE, "application/json"]) == "application/json":
        return web_export.streamed(_pages(user_id(), import_id))
    return errors_csv(user_id(), import_id)


@bp.delete("/imports/<id:import_id>")
def delete(import_id: int) -> Json:
    cancelled = requests.delete(user_id(), import_id)
    return ok("Import has been cancelled." if cancelled else "Import has been deleted successfully.")


@bp.post("/imports/<id:import_id>/continue")
def resume(import_id: int) -> Json:
    imports.read(user_id(), import_id)
    requests.resume(user_id(), import_id)
    return ok("Import has been continued.")


# --- failed rows


def _pages(owner: int, import_id: int) -> Iterator[list[Json]]:
    after = -1
    while rows := import_rows.errors(owner, import_id, after=after, limit=_PAGE):
        yield rows
        after = rows[-1]["number"]


def error_lines(owner: int, import_id: int) -> Generator[bytes]:
    """Yield the lines of a CSV with the columns of the source and the reason."""
    columns = [name for name in import_rows.error_columns(owner, import_id) if name != "error"]
    yield web_csv.lines([[*columns, "error"]])
    for rows in _pages(owner, import_id):
        yield web_csv.lines([*map(row["raw"].get, columns), row["message"]] for row in rows)


def errors_csv(owner: int, import_id: int) -> Response:
    """Stream the failed rows. The console uses this too."""
    return web_export.download(error_lines(owner, import_id), web_csv.MIMETYPE, f"import-{import_id}-errors.csv")
