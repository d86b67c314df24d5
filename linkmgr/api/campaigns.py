"""/api/campaigns and /api/campaign"""

from flask import Blueprint

from linkmgr.api import usual
from linkmgr.repository import campaigns
from linkmgr.resources.campaigns import Campaign
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, ok

bp = Blueprint("campaigns", __name__)
usual.add_routes(bp, Campaign)


@bp.post("/campaign/<id:campaign_id>/assign/<id:link_id>")
def assign(campaign_id: int, link_id: int) -> Json:
    campaigns.assign(user_id(), campaign_id, link_id)
    return ok("Link successfully added to the campaign.")
