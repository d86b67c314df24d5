"""Exports: /api/urls/export and the like, and /api/account/export."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from flask import Blueprint, Response

from linkmgr.fields.query import query_choice
from linkmgr.repository import export, export_account, export_visits, visit_list
from linkmgr.repository.export import Batch
from linkmgr.settings import settings
from linkmgr.web import export as web_export
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json

bp = Blueprint("export", __name__)

_TAGS = "|"  # between names of channels in a CSV, as Shlink reads them
_SECRET = ("password_hash", "plain")

Columns = dict[str, Callable[[Json], Any]]


def columns(names: str) -> Columns:
    """Return columns of a CSV that are named like the members."""
    return {name: lambda row, name=name: row[name] for name in names.split()}  # type: ignore[misc]


# The first five columns are those that Shlink imports.
_LINKS: Columns = {
    "Long URL": lambda link: link["url"],
    "Short code": lambda link: link["alias"],
    "Domain": lambda link: "" if link["domain"] == settings().base_url else link["domain"].partition("://")[2],
    "Title": lambda link: link["metatitle"],
    "Tags": lambda link: _TAGS.join(name.replace(_TAGS, " ") for name in link["channels"]),
    **columns(
        "id shorturl alias custom date expiry status type haspassword description metadescription metaimage campaign"
        " clicks uniqueclicks imported_clicks pixels geotarget devicetarget languagetarget parameters deeplink"
    ),
}


class Kind(NamedTuple):
    name: str  # of the file
    batch: Batch
    columns: Columns


URLS = Kind("links", export.links, _LINKS)
QR = Kind(
    "qr", export.codes, columns("id link name type data background foreground logo date scans uniquescans channel")
)
CAMPAIGNS = Kind("campaigns", export.campaigns, columns("id name slug public date"))
CHANNELS = Kind("channels", export.channels, columns("id name description color starred date"))
BIO = Kind("bio", export.bio_pages, columns("id name alias custom shorturl bio theme links channel date"))
SPLASH = Kind("splash", export.splash_pages, columns("id name title message link counter banner date"))
OVERLAY = Kind("overlays", export.overlays, columns("id type name message link label position color background date"))
PIXELS = Kind("pixels", export.pixels, columns("id type name tag date"))
DOMAINS = Kind("domains", export.domains, columns("id domain redirectroot redirect404 brandname brandlogo brandcolor"))
ANSWERS = columns("id overlay name answer date")
VISITS = columns(" ".join(visit_list.COLUMNS))


@bp.get("/urls/export")
def urls() -> Response:
    return _export(URLS, without_secrets)


@bp.get("/qr/export")
def qr() -> Response:
    return _export(QR)


@bp.get("/campaigns/export")
def campaigns() -> Response:
    return _export(CAMPAIGNS)


@bp.get("/channels/export")
def channels() -> Response:
    return _export(CHANNELS)


@bp.get("/bio/export")
def bio() -> Response:
    return _export(BIO)


@bp.get("/splash/export")
def splash() -> Response:
    return _export(SPLASH)


@bp.get("/overlay/export")
def overlay() -> Response:
    return _export(OVERLAY)


@bp.get("/overlay/answers/export")
def answers() -> Response:
    return _respond("answers", ANSWERS, export_visits.answers(user_id()))


@bp.get("/pixels/export")
def pixels() -> Response:
    return _export(PIXELS)


@bp.get("/domains/export")
def domains() -> Response:
    return _export(DOMAINS)


@bp.get("/url/<id:link_id>/visits/export")
def link_visits(link_id: int) -> Response:
    return _export_visits(link_id, "link")


@bp.get("/qr/<id:qr_id>/visits/export")
def code_visits(qr_id: int) -> Response:
    return _export_visits(qr_id, "QR code")


@bp.get("/account/export")
def account() -> Response:
    export.require_feature(user_id())
    chunks = web_export.zipped(export_account.files(user_id()))
    return web_export.download(chunks, "application/zip", "linkmgr-account.zip")


def _export(kind: Kind, convert: Callable[[Json], Json] | None = None) -> Response:
    batches = export.batches(kind.batch, user_id())
    return _respond(kind.name, kind.columns, _converted(convert, batches) if convert else batches)


def _converted(convert: Callable[[Json], Json], batches: Iterator[list[Json]]) -> Iterator[list[Json]]:
    for batch in batches:
        yield [convert(record) for record in batch]


def without_secrets(link: Json) -> Json:
    return {name: value for name, value in link.items() if name not in _SECRET}


def _export_visits(target_id: int, what: str) -> Response:
    visit_list.index(user_id(), target_id, what=what, limit=1, after=None, bots=[True, False])  # raises not_found
    return _respond("visits", VISITS, _converted(_to_visit, export_visits.visits_of(target_id)))


def _to_visit(visit: Json) -> Json:
    return {name: visit[name] for name in visit_list.COLUMNS} | {"time": visit["time"][: len("2026-11-21 09:30:00")]}


def _respond(name: str, columns: Columns, batches: Iterator[list[Json]]) -> Response:
    export.require_feature(user_id())
    form = query_choice("format", tuple(web_export.FORMATS)) or web_export.preferred()
    return web_export.download(web_export.encode(form, columns, batches), web_export.FORMATS[form], f"{name}.{form}")
