"""/api/campaigns and /api/campaign"""

from linkmgr.openapi.model import Operation
from linkmgr.openapi.schemas import done, ref, success, text
from linkmgr.openapi.usual import record, section
from linkmgr.resources.campaigns import Campaign

_RECORD = record(Campaign)["properties"]
_NAMED = {"domain": _RECORD["name"], "campaign": _RECORD["name"]}
_ADDED = {name: member for name, member in _RECORD.items() if name not in ("name", "slug")}

SECTION = section(
    Campaign,
    "Campaigns",
    example={"name": "Summer", "slug": "summer", "public": True},
    change={"name": "Winter"},
    codes=("campaign_name_taken", "campaign_slug_taken"),
    added=("plan_feature",),
    deleted="Its links remain.",
    responses={
        "add": success(**_ADDED, **_NAMED),
        "update": success(
            message=text("Campaign has been updated successfully."), **_RECORD, **_NAMED, data=ref("Campaign")
        ),
    },
    others=(
        Operation(
            "POST",
            "/api/campaign/{campaign_id}/assign/{link_id}",
            "Add a link to a campaign",
            done("Link successfully added to the campaign."),
            description="A link is in at most one campaign. This removes it from its previous campaign.",
        ),
    ),
)
