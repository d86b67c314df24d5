"""Lists of the API."""

from typing import NamedTuple

from tests.support import factories
from tests.support.factories import Make


class List(NamedTuple):
    key: str  # the member that holds the rows
    make: Make
    table: str  # whose ids are the cursors


LISTS = {
    "/api/domains": List("domains", factories.domain, "domains"),
    "/api/splash": List("splash", factories.splash, "splash_pages"),
    "/api/overlay": List("cta", factories.overlay, "overlays"),
    "/api/overlay/{overlay_id}/answers": List("answers", factories.answer, "overlay_answers"),
    "/api/bio": List("bios", factories.bio, "bios"),
    "/api/pixels": List("pixels", factories.pixel, "pixels"),
    "/api/qr": List("qrs", factories.qr, "qrs"),
    "/api/campaigns": List("campaigns", factories.campaign, "campaigns"),
    "/api/keys": List("keys", factories.key, "api_keys"),
    "/api/urls": List("urls", factories.link, "links"),
    "/api/imports": List("imports", factories.an_import, "imports"),
    "/api/channels": List("channels", factories.channel, "channels"),
    "/api/webhooks": List("webhooks", factories.webhook, "webhooks"),
    "/api/webhook/{webhook_id}/deliveries": List("deliveries", factories.delivery, "deliveries"),
    "/api/channel/{channel_id}": List("items", factories.link, "channel_items"),
}
