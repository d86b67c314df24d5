"""/api/campaigns and /api/campaign"""

from linkmgr.api import campaigns
from linkmgr.openapi.model import PAGING, Member, Operation, Resource
from linkmgr.openapi.schemas import ID, JsonSchema, done, flag, listing, own_url, reading, record, ref, success, text

_URLS: dict[str, JsonSchema] = {
    "rotator": {
        "anyOf": [own_url("r/summer"), {"type": "boolean", "enum": [False]}],
        "description": "`false` without a slug.",
        "examples": ["https://go.example.org/r/summer"],
    },
    "list": own_url("u/dana/summer-17"),
}
_NAME = text("Summer", description="The name.")

RESOURCE = Resource(
    name="Campaigns",
    description="""\
`rotator` redirects each visitor to one of the campaign's links, chosen at random. `list` is a page with its links,
except those with the status `private`. Both work only while the campaign is `public`. Responses to create and update
contain the name as `domain` and as `campaign`.""",
    members={
        "name": Member("Summer", "Unique among your campaigns. Without it, the service generates one on create."),
        "slug": Member("summer", "The last part of the rotator's URL, unique over all users."),
        "public": Member(True, "Publishes the rotator and the list.", default=False),
    },
    records={
        "CampaignListed": record(id=ID, name=text("Summer"), public=flag(True), **_URLS),
        "CampaignRead": record(id=ID, name=_NAME, slug=text("summer"), public=flag(True), **_URLS),
        "Campaign": record(error=ref("Success"), id=ID, domain=_NAME, campaign=_NAME, public=flag(True), **_URLS),
    },
    operations=(
        Operation("GET", "/api/campaigns", "List campaigns", listing("campaigns", "CampaignListed"), query=PAGING),
        Operation("GET", "/api/campaign/{campaign_id}", "Read a campaign", reading("CampaignRead"), tagged=True),
        Operation(
            "POST",
            "/api/campaign/add",
            "Add a campaign",
            ref("Campaign"),
            campaigns.NewCampaign,
            {"name": "Summer", "slug": "summer", "public": True},
            codes=("plan_feature", "campaign_name_taken", "campaign_slug_taken"),
        ),
        Operation(
            "POST",
            "/api/campaign/{campaign_id}/assign/{link_id}",
            "Add a link to a campaign",
            done("Link successfully added to the campaign."),
            description="A link is in at most one campaign. This removes it from its previous campaign.",
        ),
        Operation(
            "PUT",
            "/api/campaign/{campaign_id}/update",
            "Change a campaign",
            success(
                message=text("Campaign has been updated successfully."),
                id=ID,
                name=_NAME,
                domain=_NAME,
                campaign=_NAME,
                slug=text("summer"),
                public=flag(True),
                **_URLS,
                data=ref("CampaignRead"),
            ),
            campaigns.CampaignChanges,
            {"name": "Winter"},
            codes=("campaign_name_taken", "campaign_slug_taken"),
            tagged=True,
        ),
        Operation(
            "DELETE",
            "/api/campaign/{campaign_id}/delete",
            "Delete a campaign",
            done("Campaign has been deleted successfully."),
            description="Its links remain.",
        ),
    ),
)
