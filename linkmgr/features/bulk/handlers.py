"""An element that fails does not stop the others, unless `atomic` is true. Requests to other
servers and new passwords are limited, because each takes longer than storing hundreds of rows."""

from collections.abc import Callable, Container, Iterable
from typing import Any

from flask import Blueprint
from flask import request as current_request
from marshmallow import ValidationError

from linkmgr.api.links import IS_NEW, TO_BIN
from linkmgr.core.database.halves import failure
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError, problems_of_code
from linkmgr.core.fields import shapes
from linkmgr.core.fields.base import MAX_ID, Boolean, Integer, Target
from linkmgr.core.fields.bodies import New
from linkmgr.core.fields.links import Start
from linkmgr.core.fields.member import JsonSchema, member
from linkmgr.core.fields.problems import invalid, problems_of
from linkmgr.core.fields.query import values_of
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.core.web import passwords
from linkmgr.core.web import request as web_request
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, ok
from linkmgr.features.bulk import changes as bulk_changes
from linkmgr.features.bulk import row_budget
from linkmgr.features.bulk.schema import MAX_DETAILED, MAX_ELEMENTS, Body, Elements, ManyIds, load_element
from linkmgr.qr import logos
from linkmgr.repository import links, qr
from linkmgr.schemas.links import EXISTING, Link, link_columns, warn_unsent_domain
from linkmgr.schemas.qr import QrCode, code_to_row

bp = Blueprint("bulk", __name__, url_prefix="/api")

LIMIT = (2 << 20, "bulk_too_large")  # bytes of a body, and the error of a larger one
MAX_PASSWORDS = 20  # different ones in a request; each takes 30 ms
MAX_LOGOS, MAX_LOGO_URLS = 20, 2  # different ones in a request; each takes up to 100 ms, and 5 s by URL
MAX_ASSIGNED = 20_000  # channels and pixels of all links of a request; 10,000 take up to a second
_URL = Target(MAX_URL)

Answer = Json | tuple[Json, int]


class Bulk(New):
    atomic = member(Boolean(load_default=False), "Carry out all elements or none.", True)


class LinksCreate(Bulk):
    urls = member(
        Elements(Link.creates(), required=True),
        "Bodies of `POST /api/url/add`.",
        [{"url": "https://example.com/sale", "custom": "autumn"}, {"url": "https://example.com/winter"}],
    )


class LinkIds(Bulk):
    ids = member(ManyIds(required=True), "The ids of links.", [17, 18])


class LinksUpdate(LinkIds):
    data = member(
        Body(Link.updates(), required=True),
        "The body of `PUT /api/url/{link_id}/update`, for each of the links. `custom` and `externalid` need a single "
        "id.",
        {"campaign": 0, "expiry": "2030-12-31 23:59:59"},
    )
    unassign_channel = member(
        Integer(1, MAX_ID, load_default=0),
        "The id of a channel that the links leave. They stay in their other channels.",
        17,
    )
    kept_until = member(
        Start(load_default=None),
        "Until this time, the short URLs redirect that links had before a change of `domain` or "
        "`custom`, and no other link can have them. Otherwise they stop working.",
        "2030-12-31 23:59:59",
    )


class QrCodesCreate(Bulk):
    qrs = member(
        Elements(QrCode.creates(), required=True),
        "Bodies of `POST /api/qr/add`.",
        [{"type": "link", "data": "https://example.com/sale"}, {"type": "text", "data": "Hello"}],
    )


_INDEX = shapes.number(0) | {"description": "The position of the element in the request, from 0."}
_SHORT_URL = {"shorturl": shapes.own_url("autumn")}
_RESULT = shapes.object_of(
    index=_INDEX,
    id=shapes.ID,
    **_SHORT_URL,
    is_new=IS_NEW,
    link=shapes.own_url("qr/xkcd1234"),
    error=shapes.ref("Failure"),
    code="alias_taken",
    message="This alias is already in use. Choose another one.",
    errors=shapes.ERRORS,
) | {
    "required": ["index"],
    "description": "An element that failed has `error`, `code` and `message`, as each error has.",
}
SECTION = Section(
    "bulk",
    "Bulk",
    prose(
        __file__,
        rows=MAX_ELEMENTS,
        row_kib=row_budget.ROW_BYTES >> 10,
        MAX_DETAILED=MAX_DETAILED,
        MAX_PASSWORDS=MAX_PASSWORDS,
        MAX_LOGOS=MAX_LOGOS,
        MAX_LOGO_URLS=MAX_LOGO_URLS,
        MAX_ASSIGNED=MAX_ASSIGNED,
    ),
    lambda: {"BulkResult": _RESULT},
)
_ERRORS = ("bulk_refused", "bulk_too_large", "rows_limited", "password_busy")


def _results(name: str, done: str, **members: JsonSchema) -> JsonSchema:
    """Return the schema of a response with the results of all elements, with its `name` in the
    document. `done` is the name of their number, and `members` are those of an element that
    succeeds."""
    result = shapes.example_of(shapes.object_of(index=_INDEX, id=shapes.ID, **members), {})
    results = shapes.array_of(shapes.ref("BulkResult"))
    answer = shapes.success(name, **{done: 1000, "failed": 0}, results=results)
    example = {"examples": [{"error": 0, done: 1000, "failed": 0, "results": [result]}]}
    return shapes.with_error(answer, "bulk_failed", "If all elements failed.") | example


@bp.post("/urls/bulk")
@operation(
    "links:create",
    "bulk.addLinks",
    _results("BulkCreated", "created", **_SHORT_URL, is_new=IS_NEW),
    body=LinksCreate,
    errors=_ERRORS,
    limit=LIMIT,
    restricted=("own_only", "domains"),
)
def add_links(sent: Row) -> Answer:
    """Shorten many URLs."""
    row_budget.spend(sum(map(row_budget.rows_of, sent["urls"])))
    loaded = _load_all("urls", sent["urls"], _load_link)
    _check_assigned(_assigned(link) for link in loaded if not isinstance(link, AppError))
    atomic = sent["atomic"]
    rows = _to_rows(loaded)
    return _store(rows, atomic, Link.creates(), lambda some: links.add_links(user_id(), some, atomic=atomic))


@bp.put("/urls/bulk")
@operation(
    "links:write",
    "bulk.updateLinks",
    _results("BulkChanged", "updated", **_SHORT_URL),
    body=LinksUpdate,
    errors=(*_ERRORS, "etag_invalid", "short_urls_full"),
    limit=LIMIT,
    restricted=("own_only", "domains"),
)
def update_links(sent: Row) -> Answer:
    """Change many links."""
    if current_request.headers.get("If-Match", "*") != "*":
        raise AppError(
            "invalid", problems="If-Match is the version of one link: send it with /api/url/{id}/update"
        )
    ids, changes, atomic = sent["ids"], sent["data"], sent["atomic"]
    row_budget.spend(len(ids) * row_budget.rows_of(changes))
    for name in ("custom", "externalid"):  # which one link has
        if changes.get(name) and len(set(ids)) > 1:
            raise invalid(f"data.{name} must be that of one link: send it with one id")
    if sent["unassign_channel"] in (changes.get("channel") or ()):
        raise invalid("unassign_channel must be a channel that is not in data.channel")
    _check_assigned(_assigned(changes) for _ in set(ids))
    members = link_columns(changes) | {"unassign_channel": sent["unassign_channel"] or None}
    if sent["kept_until"]:
        members["kept_until"] = sent["kept_until"]
    results = links.update_links(user_id(), ids, members, atomic=atomic)
    return _respond("updated", results, atomic, Link.updates())


@bp.post("/urls/bulk/delete")
@operation(
    "links:write",
    "bulk.deleteLinks",
    _results("BulkDeleted", "deleted"),
    body=LinkIds,
    query=TO_BIN,
    deletes=True,
    errors=_ERRORS,
    limit=LIMIT,
    restricted=("own_only", "domains"),
)
def delete_links(sent: Row) -> Answer:
    """Delete many links.

    This is final unless `bin` is `1`. An unknown parameter or member is an error, and nothing is
    deleted.
    """
    row_budget.spend(len(sent["ids"]))
    delete = bulk_changes.put_into_bin if values_of(TO_BIN)["bin"] == "1" else bulk_changes.delete_links
    return _respond("deleted", delete(user_id(), **sent), sent["atomic"], LinkIds)


@bp.post("/qr/bulk")
@operation(
    "qr:create",
    "bulk.addQrs",
    _results("BulkCreated", "created", link=shapes.own_url("qr/xkcd1234")),
    body=QrCodesCreate,
    errors=_ERRORS,
    limit=LIMIT,
    restricted=("own_only",),
)
def add_qrs(sent: Row) -> Answer:
    """Create many QR codes."""
    row_budget.spend(sum(map(row_budget.rows_of, sent["qrs"])))
    loaded = _load_all("qrs", sent["qrs"], lambda element: load_element(QrCode.creates(), element))
    images = _load_logos(loaded)
    codes = _load_all("qrs", loaded, lambda code: code_to_row(code, images.get(code["logo"])))
    atomic = sent["atomic"]
    return _store(codes, atomic, QrCode.creates(), lambda rows: qr.add_many(user_id(), rows, atomic=atomic))


def _load_all(name: str, elements: list[Any], load: Callable[[Any], Row]) -> list[Row | AppError]:
    request = web_request.current()
    loaded: list[Row | AppError] = []
    for index, element in enumerate(elements):
        request.warning_prefix = f"{name}[{index}]: "
        try:
            loaded.append(element if isinstance(element, AppError) else load(element))
        except AppError as error:
            loaded.append(error)
    request.warning_prefix = ""
    return loaded


def _load_link(element: Any) -> Row:
    """Return the members of a new link. An element of only a URL needs only the field of the
    URL."""
    if (
        isinstance(element, dict)
        and element.keys() == {"url"}
        and (url := element["url"])
        and isinstance(url, str)
    ):
        warn_unsent_domain()
        try:
            return {"url": _URL.clean(url)}
        except ValidationError as error:
            raise problems_of({"url": error.messages}, {"url": _URL}, element) from None
    return load_element(Link.creates(), element)


def _assigned(link: Row) -> int:
    return len(link.get("channel", ())) + len(link.get("pixels", ()))


def _check_assigned(numbers: Iterable[int]) -> None:
    """Refuse a request that would always exceed the time limit of a statement."""
    if (total := sum(numbers)) > MAX_ASSIGNED:
        limit = f"The links of a request must have at most {MAX_ASSIGNED:,} channels and pixels in total"
        raise AppError("invalid", problems=f"{limit}, not {total:,}: send fewer links in each request")


def _to_rows(loaded: list[Row | AppError]) -> list[Row | AppError]:
    """Convert links to the rows of the repository. A password of several links is hashed once."""
    sent = {link["password"] for link in loaded if not isinstance(link, AppError) and "password" in link}
    if len(sent) > MAX_PASSWORDS:
        raise invalid(f"urls must not contain more than {MAX_PASSWORDS} different passwords")
    hashes = passwords.hashed_all(sent)
    return [link if isinstance(link, AppError) else _to_row(link, hashes) for link in loaded]


def _to_row(link: Row, hashes: dict[str, str]) -> Row:
    password = link.pop("password", None)
    return link_columns(link) | ({"password_hash": hashes[password]} if password else {})


def _load_logos(loaded: list[Row | AppError]) -> dict[str, bytes | AppError]:
    """Return the logos of QR codes. One of several codes is loaded once."""
    sent = {code["logo"] for code in loaded if not isinstance(code, AppError) and code["logo"]}
    if sum("://" in logo for logo in sent) > MAX_LOGO_URLS:
        raise invalid(f"qrs must not contain more than {MAX_LOGO_URLS} different URLs of logos")
    if len(sent) > MAX_LOGOS:
        raise invalid(f"qrs must not contain more than {MAX_LOGOS} different logos")
    return {logo: _load_logo(logo) for logo in sent}


def _load_logo(logo: str) -> bytes | AppError:
    try:
        return logos.load(logo)
    except AppError as error:
        return error


def _store(
    loaded: list[Row | AppError], atomic: bool, element: type[New], store: Callable[[list[Row]], list[Row]]
) -> Answer:
    """Store the valid elements. With `atomic`, store nothing if one is invalid."""
    rows = [row for row in loaded if not isinstance(row, AppError)]
    refused = atomic and len(rows) < len(loaded)
    stored = iter([{} for _ in rows] if refused or not rows else store(rows))
    failures = (failure(row) if isinstance(row, AppError) else None for row in loaded)
    return _respond("created", [failure or next(stored) for failure in failures], atomic, element)


def _respond(done: str, results: list[Row], atomic: bool, element: type[New]) -> Answer:
    """Return the numbered results. A failure of an atomic request is a 400 with the results of the
    failed elements. `element` is the schema of what an element sends."""
    members = element().fields
    numbered = [
        {"index": index} | (_with_problems(result, members) if "code" in result else result)
        for index, result in enumerate(results)
    ]
    failed = [result for result in numbered if "code" in result]
    for result in numbered:
        if result.get("is_new") is False:
            web_request.warn(f"urls[{result['index']}]: {EXISTING}")
    for result in failed[MAX_DETAILED:]:
        result.pop("errors", None)
    if atomic and failed:
        error = AppError("bulk_refused", failed=len(failed), sent=len(results))
        return web_request.error_body(error) | {"results": failed}, error.status
    answer = ok() | {done: len(results) - len(failed), "failed": len(failed), "results": numbered}
    return (
        answer | web_request.error_body(AppError("bulk_failed", sent=len(results)))
        if failed == numbered
        else answer
    )


def _with_problems(failure: Row, members: Container[str]) -> Row:
    problems = problems_of_code(failure["code"], failure["message"], members)
    return {"error": 1} | ({"errors": problems} if problems else {}) | failure
