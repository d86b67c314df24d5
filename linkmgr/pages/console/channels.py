"""Channels, and the items of one channel."""

from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.fields.query import page_number
from linkmgr.fields.short_urls import parse_item_url
from linkmgr.pages.console import resources
from linkmgr.pages.console.frame import bp
from linkmgr.repository import channels
from linkmgr.resources.channels import Channel

_PROPOSED = 30  # of each kind
_PAGES = {"links": "link", "bio": "bio_row", "qr": "qr_code"}  # endpoints by type of item

FORM = resources.declared(
    Channel,
    heading="Channels",
    used="item",
    counted="channels",
    example="A channel groups links, bio pages and QR codes. For example, a channel for each newsletter, or one for "
    "each customer.",
    consequence="Its links, bio pages and QR codes remain.",
    fields={"channel_name_taken": "name"},
    after="channel",
)


@bp.get("/channels/<id:row_id>")
def channel(row_id: int, typed: str = "", problem: str = "") -> str:
    """Show a channel. Statements: the channel, its items, and the rows that the field proposes."""
    row = Channel.read(g.user_id, row_id)
    items = channels.items(g.user_id, row_id, limit=resources.PER_PAGE, number=page_number(), after=None)
    texts = {"typed": typed, "problem": problem, "kinds": channels.ITEMS, "pages": _PAGES}
    proposed = channels.assignable(g.user_id, limit=_PROPOSED)
    return render_template("console/channel.html", form=FORM, row=row, page=items, proposed=proposed, **texts)


@bp.post("/channels/<id:row_id>")
def channel_assign(row_id: int) -> ResponseReturnValue:
    """Add the item with the URL that was typed."""
    text = request.form.get("item", "").replace("\0", "").strip()
    item = channels.find_item(g.user_id, **parse_item_url(text))
    if item is None:
        problem = "You have no link, bio page or QR code with this URL. Copy the URL from its page."
        return channel(row_id, text, problem), 400
    channels.assign(g.user_id, row_id, item["id"], type=item["type"])
    flash("Added to the channel.", "success")
    return redirect(url_for("console.channel", row_id=row_id), code=303)
