from typing import Unpack

from flask import flash, g, redirect, url_for
from werkzeug.wrappers import Response

from linkmgr.console import charts, queries
from linkmgr.console.forms import BOTH, PAGE
from linkmgr.console.frame import bp
from linkmgr.console.groups import GroupForm
from linkmgr.core.database.paging import Page, Paging
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import not_found
from linkmgr.repository import campaigns as repository
from linkmgr.schemas.campaigns import CAMPAIGNS


class CampaignForm(GroupForm):
    list_template = "console/campaigns.html"
    after = PAGE
    page_template = "console/campaign.html"
    used = "link"
    unique = ("slug",)
    example = (
        "A campaign groups links: see their clicks together, share the list of them, or let one "
        "URL redirect to a random one of them. For example, all links of a summer sale."
    )
    consequence = "Its links remain, and its rotator and its list stop working."
    types = ("links",)
    unknown = "You have no link with this short URL. Copy it from the list of links."

    def members(self, user_id: int, row_id: int, times: dict[str, str], **paging: Unpack[Paging]) -> Page:
        """List the newest links, because each has rows of its own, which are read."""
        return queries.of_campaign(user_id, row_id, times=times, days=charts.spark_days(g.zone), **paging)

    def assign(self, user_id: int, row_id: int, item: Row) -> None:
        repository.assign(user_id, row_id, item["id"])


FORM = CampaignForm(CAMPAIGNS)
FORM.add_urls("/campaigns", "/campaigns/new", "/campaigns/<id:row_id>/edit", "/campaigns/<id:row_id>/delete")
bp.add_url_rule("/campaigns/<id:row_id>", "campaign", FORM.page, methods=BOTH)


@bp.post("/campaigns/<id:row_id>/remove/<id:link_id>")
def campaign_remove(row_id: int, link_id: int) -> Response:
    if not repository.unassign(g.user_id, row_id, link_id):
        raise not_found("link")
    flash("Link removed. It still works.", "success")
    return redirect(url_for("console.campaign", row_id=row_id), code=303)
