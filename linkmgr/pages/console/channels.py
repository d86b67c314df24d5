"""Channels, and the items of one channel."""

from flask import flash, g, redirect, url_for
from werkzeug.wrappers import Response

from linkmgr.pages.console.frame import bp
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


@bp.post(f"/channels/<id:row_id>/remove/<any({', '.join(channels.ITEMS)}):type>/<id:item_id>")
def channel_remove(row_id: int, type: str, item_id: int) -> Response:  # noqa: A002 - the API's name
    channels.unassign(g.user_id, row_id, item_id, type=type)
    flash(f"Removed from the channel. The {channels.ITEMS[type]} still works.", "success")
    return redirect(url_for("console.channel", row_id=row_id), code=303)
