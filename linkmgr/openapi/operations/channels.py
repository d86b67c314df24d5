"""/api/channels and /api/channel"""

from linkmgr.api import channels
from linkmgr.openapi.model import PAGING, Member, Operation, Resource
from linkmgr.openapi.schemas import (
    COLOR,
    DAY,
    ID,
    JsonSchema,
    choice,
    done,
    flag,
    listing,
    own_url,
    record,
    ref,
    success,
    text,
    url,
)
from linkmgr.repository.channels import ITEMS

_CHANNEL: dict[str, JsonSchema] = {
    "id": ID,
    "name": text("Reading"),
    "description": text("For the train"),
    "color": COLOR,
    "starred": flag(False),
}

RESOURCE = Resource(
    name="Channels",
    description="""\
A channel collects links, bio pages and QR codes. Items are listed in the order in which they were added to the channel,
newest first. `date` is the day on which the item itself was created.""",
    members={
        "name": Member("Reading", "Unique among your channels."),
        "description": Member("For the train", "A note for yourself."),
        "color": Member("#f59e0b", "The color in lists."),
        "starred": Member(True, "Marks the channel as a favorite.", default=False),
    },
    records={
        "Channel": record(**_CHANNEL),
        "ChannelItem": record(
            type=choice(*ITEMS),
            id=ID,
            title=text("Summer sale"),
            preview=url("https://example.com/sale"),
            link=own_url("summer"),
            date=DAY,
        ),
    },
    operations=(
        Operation("GET", "/api/channels", "List channels", listing("channels", "Channel"), query=PAGING),
        Operation(
            "GET",
            "/api/channel/{channel_id}",
            "Read a channel and list its items",
            listing("items", "ChannelItem", details=ref("Channel")),
            query=PAGING,
            description="`details` is the channel.",
            tagged=True,
        ),
        Operation(
            "POST",
            "/api/channel/add",
            "Add a channel",
            success(**_CHANNEL),
            channels.NewChannel,
            {"name": "Reading", "description": "For the train", "color": "#3b82f6", "starred": True},
            codes=("channel_name_taken",),
        ),
        Operation(
            "POST",
            "/api/channel/{channel_id}/assign/{type}/{item_id}",
            "Add an item to a channel",
            done("Item successfully added to the channel."),
            description="An item may be in several channels. Adding it again changes nothing.",
        ),
        Operation(
            "PUT",
            "/api/channel/{channel_id}/update",
            "Change a channel",
            success(message=text("Channel has been updated successfully."), **_CHANNEL),
            channels.ChannelChanges,
            {"starred": False},
            codes=("channel_name_taken",),
            tagged=True,
        ),
        Operation(
            "DELETE",
            "/api/channel/{channel_id}/delete",
            "Delete a channel",
            done("Channel has been deleted successfully."),
            description="Its items remain.",
        ),
    ),
)
