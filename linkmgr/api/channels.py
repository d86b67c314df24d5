"""/api/channels and /api/channel"""

from flask import Blueprint, Response

from linkmgr.api import usual
from linkmgr.fields.base import Choice
from linkmgr.fields.bodies import New, load
from linkmgr.fields.query import paging
from linkmgr.repository import channels
from linkmgr.resources.channels import Channel
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok, versioned

bp = Blueprint("channels", __name__)
usual.add_routes(bp, Channel, "index", "add", "update", "delete")


class Assignment(New):
    type = Choice(tuple(channels.ITEMS))


@bp.get("/channel/<id:channel_id>")
def read(channel_id: int) -> Response:
    items = channels.items(user_id(), channel_id, **paging())
    channel = Channel.read(user_id(), channel_id)
    return versioned(channel.pop("version"), data=listing("items", items)["data"], details=channel)


@bp.post("/channel/<id:channel_id>/assign/<type>/<id:item_id>")
def assign(channel_id: int, type: str, item_id: int) -> Json:  # noqa: A002 - the API's name
    channels.assign(user_id(), channel_id, item_id, **load(Assignment, {"type": type}))
    return ok("Item successfully added to the channel.")
