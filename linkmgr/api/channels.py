"""/api/channels and /api/channel"""

from flask import Blueprint, Response

from linkmgr.fields.base import Boolean, Changes, Choice, Color, New, Text, body, load
from linkmgr.fields.query import paging
from linkmgr.repository import channels
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("channels", __name__)

DEFAULT_COLOR = "#3b82f6"
MAX_DESCRIPTION = 1000


class NewChannel(New):
    name = Text(required=True)
    description = Text(MAX_DESCRIPTION, multiline=True)
    color = Color(load_default=DEFAULT_COLOR)
    starred = Boolean()


class ChannelChanges(Changes):
    name = Text()
    description = Text(MAX_DESCRIPTION, multiline=True, allow_empty=True)
    color = Color()
    starred = Boolean()


class Assignment(New):
    type = Choice(tuple(channels.ITEMS))


@bp.get("/channels")
def index() -> Json:
    return listing("channels", channels.index(user_id(), **paging()))


@bp.get("/channel/<id:channel_id>")
def read(channel_id: int) -> Response:
    items = channels.items(user_id(), channel_id, **paging())
    channel = channels.read(user_id(), channel_id)
    return versioned(channel.pop("version"), data=listing("items", items)["data"], details=channel)


@bp.post("/channel/add")
def add() -> Json:
    return ok(**channels.add(user_id(), **body(NewChannel)))


@bp.post("/channel/<id:channel_id>/assign/<type>/<id:item_id>")
def assign(channel_id: int, type: str, item_id: int) -> Json:  # noqa: A002 - the API's name
    channels.assign(user_id(), channel_id, item_id, **load(Assignment, {"type": type}))
    return ok("Item successfully added to the channel.")


@bp.put("/channel/<id:channel_id>/update")
def update(channel_id: int) -> Response:
    channel = channels.update(user_id(), channel_id, **body(ChannelChanges))
    return updated("Channel has been updated successfully.", channel.pop("version"), **channel)


@bp.delete("/channel/<id:channel_id>/delete")
def delete(channel_id: int) -> Json:
    channels.delete(user_id(), channel_id)
    return ok("Channel has been deleted successfully.")
