"""/api/urls and /api/url"""

from typing import Any

from flask import Blueprint, Response
from marshmallow import Schema, post_load

from linkmgr.api.stats import list_visits
from linkmgr.db.statements import Page
from linkmgr.errors import AppError
from linkmgr.fields.aliases import Alias
from linkmgr.fields.base import Changes, Choice, New, Target, Text, Url, body, changes_of
from linkmgr.fields.links import (
    DeepLink,
    Expiry,
    IdOrIds,
    IdOrString,
    Ids,
    LinkPassword,
    LinkType,
    OwnDomain,
    Parameters,
    Targets,
    hosts_of,
    targets_of,
)
from linkmgr.fields.query import paging, query_text
from linkmgr.fields.short_urls import parse_short_url
from linkmgr.fields.urls import MAX_URL
from linkmgr.repository import url_details, url_search, urls
from linkmgr.visits import labels
from linkmgr.web import passwords
from linkmgr.web.auth import user_id
from linkmgr.web.request import warn
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("urls", __name__)

MAX_DESCRIPTION = 1000
# Clients send these defaults with every link. A create with nothing else returns the existing link of the URL, and an
# update with nothing else leaves it so.
_DEFAULTS: dict[str, Any] = {
    "type": {"type": "direct", "splash_id": None, "overlay_id": None},
    "status": "public",
    "campaign": 0,
    "channel": [],
    "geotarget": {},
    "devicetarget": {},
    "languagetarget": {},
    "deeplink": {},
    "parameters": [],
    "pixels": [],
}


class Members(Schema):
    """Members of creates and updates. "" means none."""

    custom = Alias(allow_empty=True)
    domain = OwnDomain(allow_empty=True)
    password = LinkPassword(allow_empty=True)
    expiry = Expiry(allow_empty=True)
    type = LinkType()
    geotarget = Targets("location", labels.country_problem, "A country: its English name or its ISO code.", "Germany")
    devicetarget = Targets(
        "device",
        labels.device_problem,
        "A device: a model, a maker, a system with or without its version (`iphone`, `windows 10`, `android tablet`, "
        "`mac`), or `phone`, `tablet` or `desktop`.",
        "iphone",
    )
    languagetarget = Targets("language", labels.language_problem, "A language: its code or its English name.", "fr")
    parameters = Parameters()
    metatitle = Text(allow_empty=True)
    metadescription = Text(MAX_DESCRIPTION, allow_empty=True, multiline=True)
    metaimage = Url(allow_empty=True)
    description = Text(MAX_DESCRIPTION, allow_empty=True, multiline=True)
    pixels = Ids()
    campaign = IdOrString()
    channel = IdOrIds()
    deeplink = DeepLink()
    status = Choice(("private", "public"))


def _without_defaults(loaded: Json) -> Json:
    return {name: value for name, value in loaded.items() if value not in ("", _DEFAULTS.get(name, ""))}


class LinkCreate(New, Members):
    url = Target(MAX_URL, required=True)

    @post_load
    def drop_defaults(self, loaded: Json, **_: Any) -> Json:
        return _without_defaults(loaded)


class LinkUpdate(Changes, Members):
    url = Target(MAX_URL)


def _to_columns(loaded: Json) -> Json:
    """Return the keyword arguments of the repository."""
    columns: Json = loaded | loaded.get("type", {})
    if "status" in columns:
        columns["public"] = columns.pop("status") == "public"
    if "password" in columns:
        password = columns.pop("password")
        columns["password_hash"] = passwords.hashed(password) if password else ""
    return columns


def _find(short: str) -> Json:
    """Return the link with this short URL as `read` does, with the members of a list besides."""
    page, parsed = paging(), parse_short_url(short)
    row = urls.find_by_short_url(user_id(), parsed) if parsed else None
    if row is None:
        raise AppError("short_url_unknown")
    link = url_details.read(user_id(), row["id"])
    del link["version"]
    after, number = page["after"], page["number"]
    on_page = row["id"] < after if after else number == 1
    listed = listing("urls", Page([row] if on_page else [], 1, page["limit"], None if after else number, None))
    return ok(id=row["id"], data=link.pop("data") | listed["data"], details=link)


def _list_links() -> Page:
    page = paging()
    q, by_clicks = query_text("q", MAX_URL), query_text("order") == "click"
    if by_clicks and page["after"]:
        raise AppError("invalid", problems="after requires order=date. Use page to list links by clicks")
    if q:
        search = url_search.search_by_clicks if by_clicks else url_search.search
        return search(user_id(), q, **page)
    return url_search.by_clicks(user_id(), **page) if by_clicks else urls.index(user_id(), **page)


@bp.get("/urls")
def index() -> Json:
    if short := query_text("short", MAX_URL):
        return _find(short)
    alias, domain = query_text("alias"), (query_text("domain", MAX_URL) or "").removesuffix("/")
    if alias:
        return _find("" if "/" in alias else f"{domain}/{alias}" if domain else alias)
    if domain:
        warn("domain was ignored: it goes with alias.")
    return listing("urls", _list_links())


@bp.get("/url/<id:link_id>")
def read(link_id: int) -> Response:
    link = url_details.read(user_id(), link_id)
    return versioned(link.pop("version"), id=link_id, data=link.pop("data"), details=link)


@bp.get("/url/<id:link_id>/visits")
def visits(link_id: int) -> Json | Response:
    return list_visits(link_id, what="link")


def to_row(new: Json) -> Json:
    """Return the arguments of `urls.add` for a loaded LinkCreate."""
    return {"hosts": hosts_of(targets_of(new)), **_to_columns(new)}


def to_changes(changes: Json) -> Json:
    """Return the arguments of `urls.update` for loaded LinkUpdate."""
    changed = not _without_defaults(changes).keys() <= {"url", "campaign", "channel"}
    return {"changed": changed, "targets": targets_of(changes), **_to_columns(changes)}


def create(owner: int, new: Json) -> Json:
    """Store a loaded LinkCreate, or return the existing link. The console uses this too."""
    return urls.add(owner, **to_row(new))


def change(owner: int, link_id: int, changes: Json) -> Json:
    """Store loaded LinkUpdate. The console uses this too."""
    return urls.update(owner, link_id, **to_changes(changes))


@bp.post("/url/add")
def add() -> Json:
    link = create(user_id(), body(LinkCreate))
    return ok(id=link["id"], shorturl=link["shorturl"], short=link["short"])


@bp.put("/url/<id:link_id>/update")
def update(link_id: int) -> Response:
    changes = changes_of(LinkUpdate, lambda: url_details.read_current(user_id(), link_id))
    short = change(user_id(), link_id, changes)
    link = url_details.read_current(user_id(), link_id)
    message = "Link has been updated successfully."
    return updated(message, link.pop("version"), short, id=link_id, data=link.pop("data"), details=link)


@bp.delete("/url/<id:link_id>/delete")
def delete(link_id: int) -> Json:
    urls.delete(user_id(), link_id)
    return ok("Link has been deleted successfully.")
