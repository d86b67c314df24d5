"""/api/campaigns and /api/campaign"""

import secrets

from flask import Blueprint, Response

from linkmgr.fields.base import Boolean, Changes, Matching, New, Text, body
from linkmgr.fields.query import paging
from linkmgr.repository import campaigns
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("campaigns", __name__)

SLUG = "[A-Za-z0-9_-]{1,50}", "1 to 50 letters, digits, '_' or '-'"


def _generate_name() -> str:
    return f"Campaign {secrets.token_hex(6)}"


class NewCampaign(New):
    name = Text(load_default=_generate_name)
    slug = Matching(*SLUG)
    public = Boolean()


class CampaignChanges(Changes):
    name = Text(required=True)
    slug = Matching(*SLUG, allow_empty=True)
    public = Boolean()


@bp.get("/campaigns")
def index() -> Json:
    return listing("campaigns", campaigns.index(user_id(), **paging()))


@bp.get("/campaign/<id:campaign_id>")
def read(campaign_id: int) -> Response:
    campaign = campaigns.read(user_id(), campaign_id)
    return versioned(campaign.pop("version"), data=campaign)


@bp.post("/campaign/add")
def add() -> Json:
    return ok(**campaigns.add(user_id(), **body(NewCampaign)))


@bp.post("/campaign/<id:campaign_id>/assign/<id:link_id>")
def assign(campaign_id: int, link_id: int) -> Json:
    campaigns.assign(user_id(), campaign_id, link_id)
    return ok("Link successfully added to the campaign.")


@bp.put("/campaign/<id:campaign_id>/update")
def update(campaign_id: int) -> Response:
    campaign = campaigns.update(user_id(), campaign_id, **body(CampaignChanges))
    version = campaign.pop("version")
    as_created = campaign | {"domain": campaign["name"], "campaign": campaign["name"]}
    return updated("Campaign has been updated successfully.", version, as_created, data=campaign)


@bp.delete("/campaign/<id:campaign_id>/delete")
def delete(campaign_id: int) -> Json:
    campaigns.delete(user_id(), campaign_id)
    return ok("Campaign has been deleted successfully.")
