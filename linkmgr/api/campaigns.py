"""/api/campaigns and /api/campaign"""

from flask import Blueprint, Response

from linkmgr.api import usual
from linkmgr.fields.bodies import body
from linkmgr.repository import campaigns
from linkmgr.resources.campaigns import Campaign
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, ok, updated

bp = Blueprint("campaigns", __name__)
usual.add_routes(bp, Campaign, "index", "read", "add", "delete")


@bp.post("/campaign/<id:campaign_id>/assign/<id:link_id>")
def assign(campaign_id: int, link_id: int) -> Json:
    campaigns.assign(user_id(), campaign_id, link_id)
    return ok("Link successfully added to the campaign.")


@bp.put("/campaign/<id:campaign_id>/update")
def update(campaign_id: int) -> Response:
    campaign = Campaign.change(user_id(), campaign_id, body(Campaign.updates()))
    version = campaign.pop("version")
    as_created = campaign | {"domain": campaign["name"], "campaign": campaign["name"]}
    return updated("Campaign has been updated successfully.", version, as_created, data=campaign)
