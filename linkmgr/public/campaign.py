"""/r/<slug>: redirect to one of a campaign's links. /u/<username>/<slug>-<id>: list all of them."""

from typing import Any
from urllib.parse import unquote, urlsplit

from flask import Blueprint, redirect, render_template
from flask.typing import ResponseReturnValue

from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields.query import query_position
from linkmgr.core.settings import settings
from linkmgr.core.web import limiter, security_headers
from linkmgr.core.web import request as web_request
from linkmgr.public import branded, loops, short
from linkmgr.repository import public

bp = Blueprint("campaign", __name__)
bp.after_request(security_headers.prevent_caching)

# By slug, the page of a link with the alias `r` at this path. It is shown if no campaign has the
# slug.
_LINK_PAGES = {"pixels": short.pixels, "qr": short.qr_code}


def _short_url(host: str | None, slug: str) -> str:
    return str(public.random_link(host, slug)["shorturl"])


@bp.get("/r/<word:slug>")
@loops.hop(_short_url)
def rotate(slug: str) -> ResponseReturnValue:
    try:
        return redirect(_short_url(branded.host(), slug), code=302)  # the short link counts the visit
    except AppError:
        if slug not in _LINK_PAGES:
            raise
    return _LINK_PAGES[slug]("r")


def _page(host: str | None, **arguments: Any) -> None:
    public.campaign(host, **arguments)


@bp.get("/u/<word:username>/<word:slug>-<id:campaign_id>")
@loops.hop(_page)
def show(username: str, slug: str, campaign_id: int) -> ResponseReturnValue:
    after = query_position("after")
    limiter.enforce(f"pages:{web_request.network()}", settings().page_rate_limit, "pages_limited")
    campaign = public.campaign(branded.host(), username, slug, campaign_id)
    links = public.campaign_links(campaign, after)
    page = render_template(
        "campaign.html",
        campaign=campaign,
        links=[link | {"title": link["title"] or _path(link)} for link in links.rows],
        after=after,
        next=links.next,
    )
    return page, {"Cache-Control": "no-cache"}  # updates take effect immediately


def _path(link: Row) -> str:
    """Return the path of the target, which differs among the links of a site more than its host."""
    url = urlsplit(link["url"] or link["shorturl"])
    return unquote(url.path).strip("/") or url.netloc
