"""/api/channels and /api/channel"""

from linkmgr.openapi.model import Operation
from linkmgr.openapi.schemas import DAY, ID, choice, done, listing, own_url, ref, success, text, url
from linkmgr.openapi.schemas import record as record_of
from linkmgr.openapi.usual import record, section
from linkmgr.repository.channels import ITEMS
from linkmgr.resources.channels import Channel

_RECORD = record(Channel)["properties"]

SECTION = section(
    Channel,
    "Channels",
    example={"name": "Reading", "description": "For the train", "color": "#3b82f6", "starred": True},
    change={"starred": False},
    codes=("channel_name_taken",),
    deleted="Its items remain.",
    responses={
        "read": listing("items", "ChannelItem", details=ref("Channel")),
        "add": success(**_RECORD),
        "update": success(message=text("Channel has been updated successfully."), **_RECORD),
    },
    paged="Read a channel and list its items",
    records={
        "ChannelItem": record_of(
            type=choice(*ITEMS),
            id=ID,
            title=text("Summer sale"),
            preview=url("https://example.com/sale"),
            link=own_url("summer"),
            date=DAY,
        ),
    },
    others=(
        Operation(
            "POST",
            "/api/channel/{channel_id}/assign/{type}/{item_id}",
            "Add an item to a channel",
            done("Item successfully added to the channel."),
            description="An item may be in several channels. Adding it again changes nothing.",
        ),
    ),
)
