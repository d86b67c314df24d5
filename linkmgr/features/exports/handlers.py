from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from flask import Blueprint, Response
from flask.blueprints import BlueprintSetupState

from linkmgr.core.database.tables import in_batches
from linkmgr.core.feature import resources
from linkmgr.core.fields import shapes
from linkmgr.core.fields.countries import with_code
from linkmgr.core.fields.query import ID, Parameter, query_position
from linkmgr.core.fields.resource import Stored
from linkmgr.core.settings import settings
from linkmgr.core.web import csv, streams
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Operation, Section, operation, prose
from linkmgr.core.web.responses import Json
from linkmgr.core.web.streams import BUSY
from linkmgr.features.exports import account as account_export
from linkmgr.features.statistics import visit_list
from linkmgr.repository import plans
from linkmgr.schemas.links import LINKS, Link
from linkmgr.schemas.qr import QR_CODES, QrCode

bp = Blueprint("export", __name__, url_prefix="/api")
_ANSWER = shapes.object_of(
    id=shapes.ID,
    overlay=shapes.ID,
    name="News",
    answer={"examples": [{"email": "visitor@example.com"}]},
    date=shapes.TIMESTAMP,
)
SECTION = Section("export", "Exports", prose(__file__), lambda: {"AnswerExported": _ANSWER})

_AFTER = Parameter("Only rows behind this id: the last one of an interrupted export.", **ID | {"minimum": 0})
_TAGS = "|"  # between names of channels in a CSV, as Shlink reads them

Columns = dict[str, Callable[[Json], Any]]


def columns(names: str | tuple[str, ...]) -> Columns:
    split = names.split() if isinstance(names, str) else names
    return {name: lambda row, name=name: row[name] for name in split}  # type: ignore[misc]


# The first five columns are those that Shlink imports.
_LINKS: Columns = {
    "Long URL": lambda link: link["url"],
    "Short code": lambda link: link["alias"],
    "Domain": lambda link: (
        "" if link["domain"] == settings().base_url else link["domain"].partition("://")[2]
    ),
    "Title": lambda link: link["title"],
    "Tags": lambda link: _TAGS.join(name.replace(_TAGS, " ") for name in link["channels"]),
}
_AMONG_FIRST = ("url", "domain", "title", "channel", "channels")
_LINKS |= columns(tuple(name for name in Link.shown("export") if name not in _AMONG_FIRST))


class Export(NamedTuple):
    stored: Stored
    columns: Columns


# The column `code` is only in JSON: `link` ends with it.
_CODES = columns(tuple(name for name in QrCode.shown("export") if name != "code"))
OF_LINKS = Export(LINKS, _LINKS)


def exports() -> tuple[Export, ...]:
    """Return the exports of all resources of this application."""
    others = (Export(stored, columns(stored.resource.shown("export"))) for stored in resources())
    return OF_LINKS, Export(QR_CODES, _CODES), *others


ANSWERS = columns("id overlay name answer date")
VISITS = columns(" ".join(visit_list.COLUMNS))


def _names(columns: Columns) -> str:
    return csv.lines([[*columns]]).decode()


def _operation(scope: str, name: str, record: str, **facts: Any) -> Operation:
    rows = shapes.all_of(record, f"{record.removesuffix('Exported')}Export")
    query = {"format": streams.FORMAT} | facts.pop("query", {})
    return operation(scope, f"export.{name}", rows, query=query, errors=(*BUSY, "plan_feature"), **facts)


def _add_export(setup: BlueprintSetupState, exported: Export) -> None:
    stored, words = exported.stored, exported.stored.words
    word = "links" if exported is OF_LINKS else words.plural  # of its scopes, which ends its id too
    path, summary = f"/{words.plural}/export", f"Export {words.noun}s"
    name = shapes.name_of(stored.resource, "export")
    stated = _operation(f"{word}:read", word, name, query={"after": _AFTER}, summary=summary)

    def batches() -> Iterator[list[Json]]:
        return in_batches(stored.exported, user_id(), query_position("after"))

    @stated
    def export() -> Response:
        return _respond(words.file_name, exported.columns, batches())

    @replace(stated.as_csv(_names(exported.columns)), summary=f"{summary} as CSV")
    def export_csv() -> Response:
        return _respond(words.file_name, exported.columns, batches(), "csv")

    setup.add_url_rule(path, word, export, methods=["GET"])
    setup.add_url_rule(f"{path}.csv", f"{word}_csv", export_csv, methods=["GET"])


@bp.record
def _add_exports(setup: BlueprintSetupState) -> None:
    """Add the exports of the resources that the application has."""
    for exported in exports():
        _add_export(setup, exported)


_ANSWERS = _operation("overlay:read", "answers", "AnswerExported")
_LINK_VISITS = _operation("links:read", "linkVisits", "Visit")
_CODE_VISITS = _operation("qr:read", "codeVisits", "Visit")


@bp.get("/overlay/answers/export")
@_ANSWERS
def answers() -> Response:
    """Export answers to overlays."""
    return _respond("answers", ANSWERS, visit_list.answers(user_id()))


@bp.get("/overlay/answers/export.csv")
@_ANSWERS.as_csv(_names(ANSWERS))
def answers_csv() -> Response:
    """Export answers to overlays as CSV."""
    return _respond("answers", ANSWERS, visit_list.answers(user_id()), "csv")


@bp.get("/url/<id:link_id>/visits/export")
@_LINK_VISITS
def link_visits(link_id: int) -> Response:
    """Export the visits of a link."""
    return _export_visits(link_id, "link")


@bp.get("/url/<id:link_id>/visits/export.csv")
@_LINK_VISITS.as_csv(_names(VISITS))
def link_visits_csv(link_id: int) -> Response:
    """Export the visits of a link as CSV."""
    return _export_visits(link_id, "link", "csv")


@bp.get("/qr/<id:qr_id>/visits/export")
@_CODE_VISITS
def code_visits(qr_id: int) -> Response:
    """Export the visits of a QR code."""
    return _export_visits(qr_id, "QR code")


@bp.get("/qr/<id:qr_id>/visits/export.csv")
@_CODE_VISITS.as_csv(_names(VISITS))
def code_visits_csv(qr_id: int) -> Response:
    """Export the visits of a QR code as CSV."""
    return _export_visits(qr_id, "QR code", "csv")


@bp.get("/account/export")
@operation(
    "*",
    "export.account",
    shapes.success("AccountExport"),
    errors=(*BUSY, "plan_feature"),
    file="application/zip",
    values={"files": ", ".join(f"`{name}.jsonl`" for name in account_export.FILES)},
)
def account() -> Response:
    """Export an account.

    A zip of JSON lines with everything that the account owns: {files}. `manifest.json` has the
    version of the format and the number of lines in each file.

    Lines have the members of the bodies of the API, and `id`, to which other lines refer. Links and
    public statistics have the argon2id hash of their password, so that an import restores it. The
    visitors of experiments are those of the visits that are exported. Links and QR codes in the
    bin, their visits and conversions, old short URLs of links that moved, members, API keys,
    webhooks, sessions, the activity, and the profile of the account (password, time zone, domain
    and messages) are not exported. Create new keys and webhooks after an import: only digests of
    keys are stored.
    """
    plans.require_exports(user_id())
    chunks = streams.zipped(account_export.files(user_id()))
    return streams.download(chunks, "application/zip", "linkmgr-account.zip")


def _export_visits(tracked_id: int, what: str, form: str | None = None) -> Response:
    # Raises not_found
    visit_list.index(user_id(), tracked_id, what=what, limit=1, after=None, bots=[True, False])
    batches = (list(map(_to_visit, batch)) for batch in visit_list.visits_of(tracked_id))
    return _respond("visits", VISITS, batches, form)


def _to_visit(visit: Json) -> Json:
    kept = {name: visit[name] for name in visit_list.COLUMNS} | {
        "time": visit["time"][: len("2026-11-21 09:30:00")]
    }
    return with_code(kept)


def _respond(name: str, columns: Columns, batches: Iterator[list[Json]], form: str | None = None) -> Response:
    plans.require_exports(user_id())
    return streams.export(name, columns, batches, form)
