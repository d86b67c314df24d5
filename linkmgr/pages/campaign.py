"""/r/<slug>: redirect to one of a campaign's links. /u/<username>/<slug>-<id>: list all of them."""

from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, redirect, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from linkmgr.db.statements import Row
from linkmgr.fields.query import page_number
from linkmgr.pages import branded, loops
from linkmgr.repository import public
from linkmgr.web.errors import AppError

bp = Blueprint("campaign", __name__)

LINKS_PER_PAGE = 25


@bp.get("/r/<word:slug>")
def rotate(slug: str) -> Response:
    link = public.random_link(branded.host(), slug)
    if link is None:
        raise AppError("campaign_missing")
    response = redirect(link["shorturl"], code=302)  # the short link records the visit
    response.headers["Cache-Control"] = "no-store"
    return response


@loops.hop("campaign.rotate")
def _rotated(host: str | None, slug: str) -> str | None:
    link = public.random_link(host, slug)
    if link is None:
        raise NotFound
    return str(link["shorturl"])


@bp.get("/u/<word:username>/<word:slug>-<id:campaign_id>")
def show(username: str, slug: str, campaign_id: int) -> ResponseReturnValue:
    number = page_number()
    campaign = public.campaign(branded.host(), username, slug, campaign_id)
    if campaign is None:
        raise AppError("campaign_missing")
    links = public.campaign_links(campaign_id, limit=LINKS_PER_PAGE, number=number)
    last = max(1, -(-links.total // LINKS_PER_PAGE))
    if number > last:
        raise AppError("no_such_page")
    page = render_template(
        "campaign.html",
        campaign=campaign,
        links=[link | {"title": link["title"] or _host(link)} for link in links.rows],
        page=number,
        last=last,
        path=request.path,
    )
    return page, {"Cache-Control": "no-cache"}  # updates take effect immediately


def _host(link: Row) -> str:
    return urlsplit(link["url"] or link["shorturl"]).netloc


@loops.hop("campaign.show")
def _list(host: str | None, **arguments: Any) -> None:
    if public.campaign(host, **arguments) is None:
        raise NotFound
