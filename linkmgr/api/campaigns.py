from flask import Blueprint, Response

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.query import NAMED_PAGING, named_paging
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation
from linkmgr.core.web.responses import Json, created, listing, ok, reading, record, updated
from linkmgr.repository import campaigns
from linkmgr.schemas.campaigns import Campaign

bp = Blueprint("campaigns", __name__, url_prefix="/api")
_ABOUT = """\
`rotator` redirects each visitor to one of the campaign's links, chosen at random.
`list` is a page with its links, except those with the status `private`. Neither has links that do
not work yet or any more, and both work only while the campaign is `public`. Responses to create and
update contain the name as `domain` and as `campaign`."""
SECTION = Section("campaigns", "Campaigns", _ABOUT, lambda: shapes.records_of(Campaign))

_MEMBERS = shapes.members(Campaign)
# In the order of the specification, in which the name is `domain`
_PRINTED = {
    "id": _MEMBERS["id"],
    "domain": _MEMBERS["name"],
    **{name: _MEMBERS[name] for name in ("public", "rotator", "list")},
    "campaign": _MEMBERS["name"],
}
_WRITTEN = shapes.success(
    "CampaignWritten", **_PRINTED | _MEMBERS, data=shapes.ref("Campaign"), record=shapes.ref("Campaign")
)
_WRITTEN["required"] = ["error", *_PRINTED, "data", "record"]


def _named(campaign: Row) -> Row:
    return campaign | dict.fromkeys(("domain", "campaign"), campaign["name"])


@bp.get("/campaigns")
@operation(
    "campaigns:read",
    "campaigns.list",
    shapes.listing_schema("campaigns", Campaign),
    query=NAMED_PAGING,
)
def index() -> Json:
    """List campaigns.

    Use it to find an id by a name. For the links of a campaign, use `GET /api/urls?campaign=17`,
    and for the clicks of campaigns `GET /api/stats?by=campaign`.
    """
    return listing("campaigns", campaigns.index(user_id(), **named_paging()), Campaign)


@bp.get("/campaign/<id:campaign_id>")
@operation("campaigns:read", "campaigns.get", shapes.reading_schema(Campaign), has_etag=True)
def read(campaign_id: int) -> Response:
    """Read a campaign."""
    return reading(Campaign, campaigns.read(user_id(), campaign_id))


@bp.post("/campaign/add")
@operation(
    "campaigns:create",
    "campaigns.create",
    shapes.with_message("", _WRITTEN, *(_MEMBERS.keys() - _PRINTED.keys())),
    body=Campaign.creates(),
    example={"name": "Summer", "slug": "summer", "public": True},
    errors=("plan_feature", "campaign_name_taken", "campaign_slug_taken"),
    has_etag=True,
)
def add(new: Row) -> Response:
    """Add a campaign.

    A campaign groups links, each of which is in one at most. Its `rotator` redirects to one of
    them, and its `list` is a page with all of them. To group links or QR codes in several ways, use
    channels.
    """
    return created(Campaign, _named(campaigns.add(user_id(), new)), *_PRINTED)


@bp.put("/campaign/<id:campaign_id>/update")
@operation(
    "campaigns:write",
    "campaigns.update",
    shapes.with_message("Campaign has been updated successfully.", _WRITTEN),
    body=Campaign.updates(),
    stored=campaigns.read,
    example={"name": "Winter"},
    errors=("campaign_name_taken", "campaign_slug_taken"),
    row="campaigns",
    has_etag=True,
)
def update(changes: Row, campaign_id: int) -> Response:
    """Change a campaign."""
    campaign = _named(campaigns.update(user_id(), campaign_id, changes))
    message, members = "Campaign has been updated successfully.", record(Campaign, campaign)
    printed = {name: campaign[name] for name in _PRINTED}
    return updated(message, campaign["version"], printed | members, data=members)


@bp.delete("/campaign/<id:campaign_id>/delete")
@operation(
    "campaigns:write",
    "campaigns.delete",
    shapes.done("Campaign has been deleted successfully."),
    row="campaigns",
)
def delete(campaign_id: int) -> Json:
    """Delete a campaign.

    Its links remain.
    """
    campaigns.delete(user_id(), campaign_id)
    return ok("Campaign has been deleted successfully.")


@bp.post("/campaign/<id:campaign_id>/assign/<id:link_id>")
@operation(
    "campaigns:write",
    "campaigns.assign",
    shapes.done("Link successfully added to the campaign."),
    restricted=("own_only", "domains"),
)
def assign(campaign_id: int, link_id: int) -> Json:
    """Add a link to a campaign.

    A link is in at most one campaign. This removes it from its previous campaign. A new link gets
    its campaign by the `campaign` of `POST /api/url/add`.
    """
    campaigns.assign(user_id(), campaign_id, link_id)
    return ok("Link successfully added to the campaign.")


@bp.delete("/campaign/<id:campaign_id>/assign/<id:link_id>")
@operation(
    "campaigns:write",
    "campaigns.unassign",
    shapes.done("Link successfully removed from the campaign."),
    restricted=("own_only", "domains"),
)
def unassign(campaign_id: int, link_id: int) -> Json:
    """Remove a link from a campaign.

    The link itself remains. Removing it again changes nothing.
    """
    campaigns.unassign(user_id(), campaign_id, link_id)
    return ok("Link successfully removed from the campaign.")
