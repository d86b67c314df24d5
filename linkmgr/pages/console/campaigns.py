"""Campaigns: the list, the form, and the page of one campaign with its links."""

from typing import Any

from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.fields.query import page_number
from linkmgr.fields.short_urls import parse_short_url
from linkmgr.pages import charts
from linkmgr.pages.console import periods, resources
from linkmgr.pages.console.controls import lines
from linkmgr.pages.console.frame import bp
from linkmgr.repository import campaigns as repository
from linkmgr.repository import console_queries, url_records
from linkmgr.resources.campaigns import Campaign
from linkmgr.settings import settings

MAX_LINK = 2048


@bp.get("/campaigns/<id:row_id>")
def campaign(row_id: int) -> str:
    return _page(row_id)


def _page(row_id: int, typed: str = "", problem: str = "") -> str:
    """Show a campaign. Statements: the campaign, its numbers, and its links: those of its newest links, because each
    link has rows of its own, which are read."""
    row = Campaign.read(g.user_id, row_id)
    paging: Any = {"limit": resources.PER_PAGE, "number": page_number(), "after": None}
    page = console_queries.of_campaign(g.user_id, row_id, most=resources.MANY, days=charts.spark_days(g.zone), **paging)
    links, page = page.total, page._replace(total=min(page.total, resources.MANY))
    for link in page.rows:
        charts.add_spark(link, link["days"])
    return render_template(
        "console/campaign.html",
        form=FORM,
        row=row,
        page=page,
        links=links,
        many=resources.MANY,
        numbers_of=periods.numbers(campaign_id=row_id, most=resources.MANY),
        typed=typed,
        problem=problem,
    )


@bp.post("/campaigns/<id:row_id>/assign")
def campaign_assign(row_id: int) -> ResponseReturnValue:
    Campaign.read(g.user_id, row_id)
    typed = lines(request.form.get("link", "")).strip()[:MAX_LINK]
    short = parse_short_url(typed if "/" in typed else f"{settings().base_url}/{typed}")
    link = url_records.find_by_short_url(g.user_id, short) if short else None
    if link is None:
        return _page(row_id, typed, "You have no link with this short URL. Copy it from the list of links."), 400
    repository.assign(g.user_id, row_id, link["id"])
    flash("Link added.", "success")
    return redirect(url_for("console.campaign", row_id=row_id), code=303)


@bp.post("/campaigns/<id:row_id>/remove/<id:link_id>")
def campaign_remove(row_id: int, link_id: int) -> ResponseReturnValue:
    repository.remove(g.user_id, row_id, link_id)
    flash("Link removed. It still works.", "success")
    return redirect(url_for("console.campaign", row_id=row_id), code=303)


FORM = resources.declared(
    Campaign,
    heading="Campaigns",
    used="link",
    counted="campaigns",
    unique=("slug",),
    example="A campaign groups links: see their clicks together, share the list of them, or let one URL redirect to a "
    "random one of them. For example, all links of a summer sale.",
    consequence="Its links remain, and its rotator and its list stop working.",
    fields={"campaign_name_taken": "name", "campaign_slug_taken": "slug"},
    after="campaign",
)
