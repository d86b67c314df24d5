"""Channels, and the items of one channel."""

from linkmgr.pages.console.groups import GroupForm
from linkmgr.repository import channels
from linkmgr.resources.channels import Channel

FORM = GroupForm(
    Channel,
    used="item",
    example="A channel groups links, bio pages and QR codes. For example, a channel for each newsletter, or one for "
    "each customer.",
    consequence="Its links, bio pages and QR codes remain.",
    members=channels.items,
    types=channels.ITEMS,
    assign=lambda user_id, row_id, item: channels.assign(user_id, row_id, item["id"], type=item["type"]),
    unknown="You have no link, bio page or QR code with this URL. Copy the URL from its page.",
)
