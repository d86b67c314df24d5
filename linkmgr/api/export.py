"""Exports: /api/urls/export and the like, and /api/account/export."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from flask import Blueprint, Response

from linkmgr.fields.base import MAX_ID
from linkmgr.fields.query import Parameter, query_choice, query_position
from linkmgr.imports.account import export as account_export
from linkmgr.repository import plans, visit_list
from linkmgr.repository.tables import in_batches
from linkmgr.resources import shapes
from linkmgr.resources.kinds import KINDS
from linkmgr.resources.qr import QrCode
from linkmgr.resources.resource import Stored, prose
from linkmgr.resources.urls import Link
from linkmgr.settings import settings
from linkmgr.web import csv
from linkmgr.web import export as web_export
from linkmgr.web.auth import user_id
from linkmgr.web.export import BUSY, FORMATS
from linkmgr.web.operation import Section, operation
from linkmgr.web.responses import Json

bp = Blueprint("export", __name__)
_ANSWER = shapes.record(
    id=shapes.ID,
    overlay=shapes.ID,
    name="News",
    answer={"examples": [{"email": "visitor@example.com"}]},
    date=shapes.TIMESTAMP,
)
SECTION = Section("export", "Exports", prose(__file__), lambda: {"AnswerExported": _ANSWER})

_FORMAT = Parameter(
    "Without it, the header `Accept` chooses: `application/json`, `text/csv` or `application/jsonl`.",
    type="string",
    enum=list(FORMATS),
    default="json",
)
_AFTER = Parameter(
    "Only rows behind this id: the last one of an interrupted export.", type="integer", minimum=0, maximum=MAX_ID
)
_ERRORS = (*BUSY, "plan_feature")

_TAGS = "|"  # between names of channels in a CSV, as Shlink reads them

Columns = dict[str, Callable[[Json], Any]]


def columns(names: str | tuple[str, ...]) -> Columns:
    """Return columns of a CSV that are named like the members."""
    split = names.split() if isinstance(names, str) else names
    return {name: lambda row, name=name: row[name] for name in split}  # type: ignore[misc]


# The first five columns are those that Shlink imports.
_LINKS: Columns = {
    "Long URL": lambda link: link["url"],
    "Short code": lambda link: link["alias"],
    "Domain": lambda link: "" if link["domain"] == settings().base_url else link["domain"].partition("://")[2],
    "Title": lambda link: link["title"],
    "Tags": lambda link: _TAGS.join(name.replace(_TAGS, " ") for name in link["channels"]),
}
_AMONG_FIRST = ("url", "domain", "title", "channel", "channels")
_LINKS |= columns(tuple(name for name in Link.shown("export") if name not in _AMONG_FIRST))


class Export(NamedTuple):
    """An export of a resource."""

    resource: type[Stored | Link]
    columns: Columns


# The column `code` is only in JSON: `link` ends with it.
_CODES = columns(tuple(name for name in QrCode.shown("export") if name != "code"))
EXPORTS = (
    LINKS := Export(Link, _LINKS),
    Export(QrCode, _CODES),
    *(Export(kind, columns(kind.shown("export"))) for kind in KINDS),
)
ANSWERS = columns("id overlay name answer date")
VISITS = columns(" ".join(visit_list.COLUMNS))


def _files(columns: Columns) -> dict[str, str]:
    """Return the other media types of an export, with examples."""
    return {"text/csv": csv.lines([[*columns]]).decode(), "application/jsonl": ""}


def _add_export(kind: Export, word: str, name: str) -> None:
    """Add the export of a resource. `word` is that of its scopes, and `name` ends its id."""

    @bp.get(f"/{kind.resource.plural}/export", endpoint=name)
    @operation(
        f"{word}:read",
        f"export.{name}",
        shapes.success(data=shapes.array_of(shapes.ref(shapes.name_of(kind.resource, "export")))),
        query={"format": _FORMAT, "after": _AFTER},
        errors=_ERRORS,
        files=_files(kind.columns),
        summary=f"Export {kind.resource.noun}s",
    )
    def export() -> Response:
        batches = in_batches(kind.resource.batch, user_id(), query_position("after"))
        return _respond(kind.resource.file_name(), kind.columns, batches)


_add_export(LINKS, "links", "links")
for kind in EXPORTS[1:]:
    _add_export(kind, kind.resource.plural, kind.resource.plural)


@bp.get("/overlay/answers/export")
@operation(
    "overlay:read",
    "export.answers",
    shapes.success(data=shapes.array_of(shapes.ref("AnswerExported"))),
    query={"format": _FORMAT},
    errors=_ERRORS,
    files=_files(ANSWERS),
)
def answers() -> Response:
    """Export answers to overlays."""
    return _respond("answers", ANSWERS, visit_list.answers(user_id()))


@bp.get("/url/<id:link_id>/visits/export")
@operation(
    "links:read",
    "export.linkVisits",
    shapes.success(data=shapes.array_of(shapes.ref("Visit"))),
    query={"format": _FORMAT},
    errors=_ERRORS,
    files=_files(VISITS),
)
def link_visits(link_id: int) -> Response:
    """Export the visits of a link."""
    return _export_visits(link_id, "link")


@bp.get("/qr/<id:qr_id>/visits/export")
@operation(
    "qr:read",
    "export.codeVisits",
    shapes.success(data=shapes.array_of(shapes.ref("Visit"))),
    query={"format": _FORMAT},
    errors=_ERRORS,
    files=_files(VISITS),
)
def code_visits(qr_id: int) -> Response:
    """Export the visits of a QR code."""
    return _export_visits(qr_id, "QR code")


@bp.get("/account/export")
@operation(
    "*",
    "export.account",
    shapes.success(),
    errors=_ERRORS,
    file="application/zip",
    values={"files": ", ".join(f"`{name}.jsonl`" for name in account_export.FILES)},
)
def account() -> Response:
    """Export an account.

    A zip of JSON lines with everything that the account owns: {files}. `manifest.json` has the version of the format
    and the number of lines in each file.

    Lines have the members of the bodies of the API, and `id`, to which other lines refer. Links have the argon2id hash
    of their password, so that an import restores it. API keys, webhooks, sessions and the password of the account are
    not exported. Create new keys and webhooks after an import: only digests of keys are stored.
    """
    plans.require_exports(user_id())
    chunks = web_export.zipped(account_export.files(user_id()))
    return web_export.download(chunks, "application/zip", "linkmgr-account.zip")


def _export_visits(tracked_id: int, what: str) -> Response:
    visit_list.index(user_id(), tracked_id, what=what, limit=1, after=None, bots=[True, False])  # raises not_found
    return _respond("visits", VISITS, (list(map(_to_visit, batch)) for batch in visit_list.visits_of(tracked_id)))


def _to_visit(visit: Json) -> Json:
    return {name: visit[name] for name in visit_list.COLUMNS} | {"time": visit["time"][: len("2026-11-21 09:30:00")]}


def _respond(name: str, columns: Columns, batches: Iterator[list[Json]]) -> Response:
    plans.require_exports(user_id())
    form = query_choice("format", tuple(web_export.FORMATS)) or web_export.preferred()
    return web_export.download(web_export.encode(form, columns, batches), web_export.FORMATS[form], f"{name}.{form}")
