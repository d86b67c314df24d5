"""Bio pages, domains, splash pages, overlays, pixels, QR codes, campaigns and channels: the usual operations, and few
others."""

from linkmgr.api import campaigns
from linkmgr.fields.qr import OBJECTS
from linkmgr.fields.query import PAGING, Parameter
from linkmgr.openapi.model import COUNTED, Operation
from linkmgr.openapi.operations.stats import visits_of
from linkmgr.openapi.usual import section
from linkmgr.qr import logos
from linkmgr.repository.channels import ITEMS
from linkmgr.resources import shapes as js
from linkmgr.resources.bio import BioPage
from linkmgr.resources.channels import Channel
from linkmgr.resources.domains import Domain
from linkmgr.resources.overlay import Overlay
from linkmgr.resources.pixels import Pixel
from linkmgr.resources.qr import QrCode
from linkmgr.resources.shapes import record_of
from linkmgr.resources.splash import Splash

_QR = {"details": js.ref("QrCode"), "data": js.ref("Statistics")}
_CHANNEL = record_of(Channel)["properties"]

SECTIONS = (
    section(
        BioPage,
        "Bio pages",
        nouns={"bio": "bio page"},
        example={"name": "Dana", "theme": "ocean", "links": [{"title": "Shop", "url": "https://example.com/shop"}]},
        change={"bio": "I write.", "theme": "dark"},
        codes=("plan_feature", "alias_taken"),
        responses={"add": js.created("BioPage", alias="dana", shorturl=js.own_url("dana"))},
    ),
    section(
        Domain,
        "Branded domains",
        codes=("redirect_branded", *logos.ERRORS),
        added=(*COUNTED, "domain_taken", "domain_unproven"),
        refused=("domain_in_use",),
    ),
    section(Splash, "Splash pages", added=COUNTED, nouns={"splash": "splash page"}),
    section(
        Overlay,
        "CTA overlays",
        change={"label": "Have a look", "position": "top"},
        codes=("overlay_colours_too_close",),
        added=COUNTED,
        records={
            "OverlayAnswer": js.record(id=js.ID, answer=js.map_of("visitor@example.com", "email"), date=js.TIMESTAMP)
        },
        others=(
            Operation(
                "GET /api/overlay/{overlay_id}/answers",
                "List the answers to an overlay",
                js.listing("answers", "OverlayAnswer"),
                query=PAGING,
            ),
        ),
    ),
    section(Pixel, "Pixels", added=COUNTED),
    section(
        QrCode,
        "QR codes",
        nouns={"qr": "QR code"},
        example={"type": "link", "data": "https://example.com/", "name": "Poster", "foreground": "rgb(0,0,128)"},
        change={"data": "https://example.com/winter"},
        codes=(*logos.UNUSABLE, "colours_too_close", "link_branded", "short_link_unknown"),
        responses={
            "read": js.success(**_QR),
            "add": js.success(id=js.ID, link=js.own_url("qr/bcd234fgh567"), **_QR),
            "update": js.success(message="QR has been updated successfully.", **_QR),
            "delete": js.done("QR Code has been deleted successfully."),
        },
        others=(visits_of("/api/qr/{qr_id}/visits", "QR code"),),
        tables={f"Data of the type {kind}": schema.__name__ for kind, schema in OBJECTS.items()},
    ),
    campaigns.SECTION,
    section(
        Channel,
        "Channels",
        example={"name": "Reading", "description": "For the train", "color": "#3b82f6", "starred": True},
        change={"starred": False},
        codes=("channel_name_taken",),
        responses={
            "read": js.listing("items", "ChannelItem", details=js.ref("Channel")),
            "add": js.success(**_CHANNEL),
            "update": js.success(message="Channel has been updated successfully.", **_CHANNEL),
        },
        paged="Read a channel and list its items",
        records={
            "ChannelItem": js.record(
                type=js.choice(*ITEMS),
                id=js.ID,
                title="Summer sale",
                preview=js.url("https://example.com/sale"),
                link=js.own_url("summer"),
                date=js.DAY,
            )
        },
        others=(
            Operation(
                "POST /api/channel/{channel_id}/assign/{type}/{item_id}",
                "Add an item to a channel",
                js.done("Item successfully added to the channel."),
                path_parameters={"type": Parameter("The kind of the item.", type="string", enum=list(ITEMS))},
            ),
        ),
    ),
)
