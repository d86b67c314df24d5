"""Lists of the API."""

from typing import NamedTuple

from tests.support import factories
from tests.support.factories import Make


class List(NamedTuple):
    key: str  # the member that holds the rows
    make: Make
    table: str  # whose ids are the cursors


LISTS = {
    f"/api/{kind.plural}": List(kind.list_key or kind.plural, factories.of(kind), factories.TABLES[kind.path])
    for kind in factories.RESOURCES
} | {
    "/api/overlay/{overlay_id}/answers": List("answers", factories.answer, "overlay_answers"),
    "/api/imports": List("imports", factories.an_import, "imports"),
    "/api/webhook/{webhook_id}/deliveries": List("deliveries", factories.delivery, "deliveries"),
    "/api/channel/{channel_id}": List("items", factories.link, "channel_items"),
}
