from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.base import Choice
from linkmgr.core.fields.bodies import New, load
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.query import NAMED_PAGING, PAGING, Parameter, named_paging, paging
from linkmgr.core.web import scopes
from linkmgr.core.web.auth import caller, user_id
from linkmgr.core.web.operation import Section, operation
from linkmgr.core.web.responses import Json, listing, ok, record, updated, versioned
from linkmgr.repository import channels
from linkmgr.schemas.channels import Channel

bp = Blueprint("channels", __name__, url_prefix="/api")

_ITEM = shapes.object_of(
    type=shapes.choice(*channels.ITEMS),
    id=shapes.ID,
    title="Summer sale",
    preview=shapes.url("https://example.com/sale"),
    link=shapes.own_url("summer"),
    date=shapes.DAY,
)
_MEMBERS = shapes.members(Channel)
_WRITTEN = shapes.record_schema(Channel, "Response", **_MEMBERS)
_PATH = {
    "type": Parameter(
        "The type of the item.", title="ChannelItemType", type="string", enum=list(channels.ITEMS)
    )
}


def _records() -> dict[str, JsonSchema]:
    return shapes.records_of(Channel) | {"ChannelItem": _ITEM}


_ABOUT = """\
A channel collects links, bio pages and QR codes. Items are listed in the order in
which they were added to the channel, newest first. `date` is the day on which the item itself was
created."""
SECTION = Section("channels", "Channels", _ABOUT, _records)


class Assignment(New):
    type = Choice(tuple(channels.ITEMS))


@bp.get("/channels")
@operation(
    "channels:read",
    "channels.list",
    shapes.listing_schema("channels", Channel),
    query=NAMED_PAGING,
)
def index() -> Json:
    """List channels."""
    return listing("channels", channels.index(user_id(), **named_paging()), Channel)


@bp.get("/channel/<id:channel_id>")
@operation(
    "channels:read",
    "channels.get",
    shapes.listing_schema(
        "items", "ChannelItem", details=shapes.ref("Channel"), record=shapes.ref("Channel")
    ),
    query=PAGING,
    has_etag=True,
)
def read(channel_id: int) -> Response:
    """Read a channel and list its items."""
    items = channels.items(user_id(), channel_id, **paging())
    channel = channels.read(user_id(), channel_id)
    return versioned(
        channel["version"], data=listing("items", items)["data"], details=record(Channel, channel)
    )


@bp.post("/channel/add")
@operation(
    "channels:create",
    "channels.create",
    shapes.with_message("", _WRITTEN),
    body=Channel.creates(),
    example={"name": "Reading", "description": "For the train", "color": "#3b82f6", "starred": True},
    errors=("channel_name_taken",),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Add a channel."""
    channel = channels.add(user_id(), new)
    return updated(None, channel["version"], verb="set", **record(Channel, channel))


@bp.put("/channel/<id:channel_id>/update")
@operation(
    "channels:write",
    "channels.update",
    shapes.with_message("Channel has been updated successfully.", _WRITTEN),
    body=Channel.updates(),
    stored=channels.read,
    example={"starred": False},
    errors=("channel_name_taken",),
    row="channels",
    has_etag=True,
)
def update(changes: Row, channel_id: int) -> Response:
    """Change a channel."""
    channel = channels.update(user_id(), channel_id, changes)
    return updated("Channel has been updated successfully.", channel["version"], **record(Channel, channel))


@bp.delete("/channel/<id:channel_id>/delete")
@operation(
    "channels:write",
    "channels.delete",
    shapes.done("Channel has been deleted successfully."),
    row="channels",
)
def delete(channel_id: int) -> Json:
    """Delete a channel.

    Its items remain.
    """
    channels.delete(user_id(), channel_id)
    return ok("Channel has been deleted successfully.")


@bp.post("/channel/<id:channel_id>/assign/<type>/<id:item_id>")
@operation(
    "channels:write",
    "channels.assign",
    shapes.done("Item successfully added to the channel."),
    path=_PATH,
    restricted=("own_only", "domains"),
)
def assign(channel_id: int, type: str, item_id: int) -> Json:  # noqa: A002 - the API's name
    """Add an item to a channel.

    An item may be in several channels. Adding it again changes nothing.
    """
    _check_key(type)
    channels.assign(user_id(), channel_id, item_id, **load(Assignment, {"type": type}))
    return ok("Item successfully added to the channel.")


@bp.delete("/channel/<id:channel_id>/assign/<type>/<id:item_id>")
@operation(
    "channels:write",
    "channels.unassign",
    shapes.done("Item successfully removed from the channel."),
    path=_PATH,
    restricted=("own_only", "domains"),
)
def unassign(channel_id: int, type: str, item_id: int) -> Json:  # noqa: A002 - the API's name
    """Remove an item from a channel.

    The item itself remains. Removing it again changes nothing.
    """
    _check_key(type)
    channels.unassign(user_id(), channel_id, item_id, **load(Assignment, {"type": type}))
    return ok("Item successfully removed from the channel.")


def _check_key(type: str) -> None:  # noqa: A002
    """Let restricted keys assign links only."""
    if type != "links":
        scopes.require_unrestricted(caller().key)
