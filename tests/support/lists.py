"""Lists of the API."""

from typing import NamedTuple

from linkmgr.core.fields.shapes import PAGE
from linkmgr.schemas.statistics import STATISTICS
from tests.support import factories
from tests.support.document import operations
from tests.support.factories import Make


class List(NamedTuple):
    key: str  # the member that holds the rows
    make: Make
    table: str  # whose ids are the cursors
    id: str = "id"


def _key(path: str) -> str:
    """Return the member with the rows, which stands beside those of all lists."""
    [response] = [route.operation.response for route in operations() if (route.method, route.path) == ("GET", path)]
    [key] = response["properties"]["data"]["properties"].keys() - PAGE.keys() - STATISTICS["properties"].keys()
    return str(key)


LISTS = {
    f"/api/{stored.words.plural}": List(_key(f"/api/{stored.words.plural}"), factories.of(stored), stored.words.table)
    for stored in factories.RESOURCES
} | {
    "/api/overlay/{overlay_id}/answers": List("answers", factories.answer, "overlay_answers"),
    "/api/activity": List("activity", factories.change, "events", "number"),
    "/api/conversions": List("conversions", factories.conversion, "conversions"),
    "/api/imports": List("imports", factories.an_import, "imports"),
    "/api/webhook/{webhook_id}/deliveries": List("deliveries", factories.delivery, "deliveries"),
    "/api/channel/{channel_id}": List("items", factories.link, "channel_items"),
}
