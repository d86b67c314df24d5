"""/api/urls and /api/url"""

from typing import Any

from flask import Blueprint, Response
from marshmallow import Schema, post_load

from linkmgr.api.stats import list_visits
from linkmgr.db.statements import Page
from linkmgr.fields.base import Changes, Choice, New, Target, Text, body, paging, query_choice, query_text
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
from linkmgr.fields.urls import MAX_URL
from linkmgr.repository import urls
from linkmgr.web import passwords
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok

bp = Blueprint("urls", __name__)

ORDERS = ("date", "click")
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
    geotarget = Targets("location")
    devicetarget = Targets("device")
    languagetarget = Targets("language")
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


def _list_links() -> Page:
    page = paging()
    q, short, order = query_text("q", MAX_URL), query_text("short", MAX_URL), query_choice("order", ORDERS)
    if short:
        return urls.find_by_short_url(user_id(), short, **page)
    if q or order == "click":
        return urls.search(user_id(), q=q, by_clicks=order == "click", **page)
    return urls.index(user_id(), **page)


@bp.get("/urls")
def index() -> Json:
    return listing("urls", _list_links())


@bp.get("/url/<id:link_id>")
def read(link_id: int) -> Json:
    link = urls.read(user_id(), link_id)
    return ok(id=link_id, data=link.pop("data"), details=link)


@bp.get("/url/<id:link_id>/visits")
def visits(link_id: int) -> Json | Response:
    return list_visits(link_id, what="link")


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
