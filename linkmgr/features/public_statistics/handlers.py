from flask import Blueprint

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Operation, Section, operation, prose
from linkmgr.core.web.responses import Json, ok, record, with_record
from linkmgr.features.public_statistics import repository as public_statistics
from linkmgr.features.public_statistics.schema import PublicPage, change

bp = Blueprint("public_pages", __name__, url_prefix="/api")
SECTION = Section("public", "Public statistics", prose(__file__), lambda: shapes.records_of(PublicPage))
_CHANGED = "Public statistics have been updated successfully."


def _changing(scope: str, operation_id: str, row: str) -> Operation:
    return operation(
        scope,
        operation_id,
        shapes.changed_schema(_CHANGED, PublicPage),
        body=PublicPage.updates(),
        example={"public": True, "period": "12mo", "tables": ["country"]},
        errors=("password_busy",),
        row=row,
    )


def _answer(page: Row, *message: str) -> Json:
    return ok(*message) | with_record({"data": record(PublicPage, page)})


@bp.get("/url/<id:link_id>/public")
@operation("links:read", "public.ofLink", shapes.reading_schema(PublicPage))
def of_link(link_id: int) -> Json:
    """Read the page of a link."""
    return _answer(public_statistics.read(user_id(), link_id=link_id))


@bp.put("/url/<id:link_id>/public")
@_changing("links:write", "public.changeOfLink", "links")
def change_of_link(sent: Row, link_id: int) -> Json:
    """Show the statistics of a link, hide them, or change their page."""
    return _answer(change(user_id(), sent, link_id=link_id), _CHANGED)


@bp.get("/campaign/<id:campaign_id>/public")
@operation("campaigns:read", "public.ofCampaign", shapes.reading_schema(PublicPage))
def of_campaign(campaign_id: int) -> Json:
    """Read the page of a campaign."""
    return _answer(public_statistics.read(user_id(), campaign_id=campaign_id))


@bp.put("/campaign/<id:campaign_id>/public")
@_changing("campaigns:write", "public.changeOfCampaign", "campaigns")
def change_of_campaign(sent: Row, campaign_id: int) -> Json:
    """Show the statistics of a campaign, hide them, or change their page."""
    return _answer(change(user_id(), sent, campaign_id=campaign_id), _CHANGED)
