"""/api/urls and /api/url"""

from typing import Any

from flask import Blueprint
from marshmallow import Schema, post_load

from linkmgr.db.statements import Page
from linkmgr.fields.base import Changes, Choice, New, Target, Text, body, paging, query_text
from linkmgr.fields.links import (
    Alias,
    DeepLink,
    Expiry,
    IdOrString,
    Ids,
    Image,
    LinkPassword,
    LinkType,
    OwnDomain,
    Parameters,
    Targets,
    target_hosts,
)
from linkmgr.fields.short_urls import parse_short_url
from linkmgr.fields.urls import MAX_URL
from linkmgr.repository import urls
from linkmgr.visits import labels
from linkmgr.web import passwords
from linkmgr.web.auth import user_id
from linkmgr.web.errors import AppError
from linkmgr.web.responses import Json, listing, ok

bp = Blueprint("urls", __name__)

MAX_DESCRIPTION = 1000
# Clients send these defaults with every link. A create with nothing else returns the existing link of the URL.
_DEFAULTS: dict[str, Any] = {
    "type": {"type": "direct", "splash_id": None, "overlay_id": None},
    "status": "public",
    "campaign": 0,
    "channel": 0,
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
    geotarget = Targets("location", labels.country_problem)
    devicetarget = Targets("device", labels.device_problem)
    languagetarget = Targets("language", labels.language_problem)
    parameters = Parameters()
    metatitle = Text(allow_empty=True)
    metadescription = Text(MAX_DESCRIPTION, allow_empty=True, multiline=True)
    metaimage = Image(allow_empty=True)
    description = Text(MAX_DESCRIPTION, allow_empty=True, multiline=True)
    pixels = Ids()
    campaign = IdOrString()
    channel = IdOrString()
    deeplink = DeepLink()
    status = Choice(("private", "public"))


class NewLink(New, Members):
    url = Target(MAX_URL, required=True)

    @post_load
    def drop_defaults(self, loaded: Json, **_: Any) -> Json:
        return {name: value for name, value in loaded.items() if value not in ("", _DEFAULTS.get(name, ""))}


class LinkChanges(Changes, Members):
    url = Target(MAX_URL)


def _to_columns(loaded: Json) -> Json:
    """Return the keyword arguments of the repository."""
    columns: Json = {"hosts": target_hosts(loaded)} | loaded | loaded.get("type", {})
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
    link = urls.read(user_id(), row["id"])
    listed = listing("urls", Page([row] if page["number"] == 1 else [], 1, **page))
    return ok(id=row["id"], data=link.pop("data") | listed["data"], details=link)


def _list_links() -> Page:
    page = paging()
    q, by_clicks = query_text("q", MAX_URL), query_text("order") == "click"
    if q or by_clicks:
        return urls.search(user_id(), q=q, by_clicks=by_clicks, **page)
    return urls.index(user_id(), **page)


@bp.get("/urls")
def index() -> Json:
    if short := query_text("short", MAX_URL):
        return _find(short)
    return listing("urls", _list_links())


@bp.get("/url/<id:link_id>")
def read(link_id: int) -> Json:
    link = urls.read(user_id(), link_id)
    return ok(id=link_id, data=link.pop("data"), details=link)


@bp.post("/url/add")
def add() -> Json:
    return ok(**urls.add(user_id(), **_to_columns(body(NewLink))))


@bp.put("/url/<id:link_id>/update")
def update(link_id: int) -> Json:
    updated = urls.update(user_id(), link_id, **_to_columns(body(LinkChanges)))
    return ok("Link has been updated successfully.", **updated)


@bp.delete("/url/<id:link_id>/delete")
def delete(link_id: int) -> Json:
    urls.delete(user_id(), link_id)
    return ok("Link has been deleted successfully.")
