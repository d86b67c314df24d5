from typing import Unpack

from flask import flash, g, redirect, url_for
from werkzeug.wrappers import Response

from linkmgr.console import charts, overview
from linkmgr.console.forms import BOTH, PAGE
from linkmgr.console.frame import bp
from linkmgr.console.groups import GroupForm
from linkmgr.core.database.paging import Page, Paging
from linkmgr.core.database.statements import Row
from linkmgr.repository import channels
from linkmgr.schemas.channels import CHANNELS


class ChannelForm(GroupForm):
    list_template = "console/channels.html"
    after = PAGE
    page_template = "console/channel.html"
    used = "item"
    example = (
        "A channel groups links, bio pages and QR codes. For example, a channel for each "
        "newsletter, or one for each customer."
    )
    consequence = "Its links, bio pages and QR codes remain."
    types = channels.ITEMS
    unknown = "You have no link, bio page or QR code with this URL. Copy the URL from its page."

    def members(self, user_id: int, row_id: int, times: dict[str, str], **paging: Unpack[Paging]) -> Page:
        return overview.of_channel(user_id, row_id, times=times, days=charts.spark_days(g.zone), **paging)

    def assign(self, user_id: int, row_id: int, item: Row) -> None:
        channels.assign(user_id, row_id, item["id"], type=item["type"])


FORM = ChannelForm(CHANNELS)
FORM.add_urls("/channels", "/channels/new", "/channels/<id:row_id>/edit", "/channels/<id:row_id>/delete")
bp.add_url_rule("/channels/<id:row_id>", "channel", FORM.page, methods=BOTH)


@bp.post(f"/channels/<id:row_id>/remove/<any({', '.join(channels.ITEMS)}):type>/<id:item_id>")
def channel_remove(row_id: int, type: str, item_id: int) -> Response:  # noqa: A002 - the API's name
    channels.unassign(g.user_id, row_id, item_id, type=type)
    flash(f"Removed from the channel. The {channels.ITEMS[type]} still works.", "success")
    return redirect(url_for("console.channel", row_id=row_id), code=303)
