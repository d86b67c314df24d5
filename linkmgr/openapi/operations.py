"""What the document says of each operation beyond its route and its schemas, by the endpoint of the route."""

from dataclasses import dataclass
from typing import Any

from marshmallow import Schema

from linkmgr.api import account, bio, campaigns, channels, domains, overlay, pixels, plans, qr, splash, urls, users
from linkmgr.fields.base import DEFAULT_LIMIT, LARGEST_LIMIT, LARGEST_PAGE
from linkmgr.fields.urls import LONGEST_URL
from linkmgr.openapi import schemas
from linkmgr.openapi.schemas import JsonSchema, all_of, listing, reading


@dataclass(frozen=True)
class Operation:
    """`codes`: the refusals that not every operation of its kind has; document.py adds those.  `tagged`: the answer has
    an ETag."""

    summary: str
    answer: JsonSchema
    body: type[Schema] | None = None
    codes: tuple[str, ...] = ()
    query: tuple[JsonSchema, ...] = ()
    tagged: bool = False


def _parameter(name: str, description: str, **schema: Any) -> JsonSchema:
    return {"name": name, "in": "query", "description": description, "schema": schema}


PAGING = (
    _parameter(
        "limit",
        f"The page size; above {LARGEST_LIMIT} it is cut to {LARGEST_LIMIT}.",
        type="integer",
        minimum=1,
        default=DEFAULT_LIMIT,
    ),
    _parameter("page", "The page, from 1.", type="integer", minimum=1, maximum=LARGEST_PAGE, default=1),
)
_LINK_QUERY = (
    _parameter("order", "Newest or most clicked first.", type="string", enum=list(urls.ORDERS)),
    _parameter("q", "A part of the URL, the alias or the title.", type="string", maxLength=LONGEST_URL),
    _parameter("short", "The whole short URL of one link.", type="string", maxLength=LONGEST_URL),
)
_USER_QUERY = (
    _parameter("filter", "Users of one status.", type="string", enum=list(users.STATUSES)),
    _parameter("email", "A part of the address.", type="string", maxLength=255),
)
_FETCH = (
    "fetch_refused", "fetch_unresolved", "fetch_unreachable", "fetch_timed_out", "fetch_too_large", "fetch_status",
    "fetch_busy", "logo_missing", "logo_unusable", "image_busy",
)  # fmt: skip
_LINK = (
    "plan_feature", "alias_taken", "link_branded", "domain_unknown", "domain_in_use", "campaign_unknown",
    "splash_unknown", "overlay_unknown", "pixel_unknown", "channel_unknown",
)  # fmt: skip
_COUNT = ("plan_feature", "plan_limit")


def _list(what: str, key: str, shape: str, query: tuple[JsonSchema, ...] = ()) -> Operation:
    long = ("address_too_long",) if query else ()
    return Operation(f"List {what}", listing(key, shape), codes=long, query=(*query, *PAGING))


def _read(what: str, shape: str) -> Operation:
    return Operation(f"Read {what}", reading(shape))


def _delete(what: str, *codes: str) -> Operation:
    return Operation(f"Delete {what}", schemas.DONE, codes=codes)


OPERATIONS: dict[str, Operation] = {
    "account.read": Operation("Read the account", reading("Account")),
    "account.update": Operation(
        "Change the e-mail address or the password", schemas.DONE, account.AccountChanges, ("email_taken",)
    ),
    "urls.index": _list("links", "urls", "LinkListed", _LINK_QUERY),
    "urls.read": Operation("Read a link and its statistics", schemas.LINK_READ),
    "urls.add": Operation("Shorten a URL", schemas.LINK_ADDED, urls.NewLink, (*_LINK, "plan_limit")),
    "urls.update": Operation("Change a link", schemas.LINK_CHANGED, urls.LinkChanges, _LINK),
    "urls.delete": _delete("a link"),
    "bio.index": _list("bio pages", "bios", "BioPageListed"),
    "bio.read": _read("a bio page", "BioPage"),
    "bio.add": Operation("Add a bio page", schemas.BIO_ADDED, bio.NewBio, ("plan_feature", "alias_taken")),
    "bio.update": Operation("Change a bio page", schemas.DONE, bio.BioChanges, ("plan_feature", "alias_taken")),
    "bio.delete": _delete("a bio page"),
    "domains.index": _list("branded domains", "domains", "Domain"),
    "domains.read": _read("a branded domain", "Domain"),
    "domains.add": Operation(
        "Add a branded domain",
        schemas.CREATED,
        domains.NewDomain,
        (*_COUNT, "domain_taken", "domain_unproven", "redirect_branded", "fetch_busy"),
    ),
    "domains.update": Operation("Change a branded domain", schemas.DONE, domains.DomainChanges, ("redirect_branded",)),
    "domains.delete": _delete("a branded domain", "domain_in_use"),
    "splash.index": _list("splash pages", "splash", "SplashPageListed"),
    "splash.read": _read("a splash page", "SplashPage"),
    "splash.add": Operation("Add a splash page", schemas.CREATED, splash.NewSplash, _COUNT),
    "splash.update": Operation("Change a splash page", schemas.DONE, splash.SplashChanges),
    "splash.delete": _delete("a splash page"),
    "overlay.index": _list("CTA overlays", "cta", "OverlayListed"),
    "overlay.read": _read("a CTA overlay", "Overlay"),
    "overlay.answers": _list("what visitors filled into the form of an overlay", "answers", "OverlayAnswer"),
    "overlay.add": Operation("Add a CTA overlay", schemas.CREATED, overlay.NewOverlay, _COUNT),
    "overlay.update": Operation("Change a CTA overlay", schemas.DONE, overlay.OverlayChanges),
    "overlay.delete": _delete("a CTA overlay"),
    "pixels.index": _list("pixels", "pixels", "Pixel"),
    "pixels.read": _read("a pixel", "Pixel"),
    "pixels.add": Operation("Add a pixel", schemas.CREATED, pixels.NewPixel, _COUNT),
    "pixels.update": Operation("Change a pixel", schemas.DONE, pixels.PixelChanges),
    "pixels.delete": _delete("a pixel"),
    "qr.index": _list("QR codes", "qrs", "QrCode"),
    "qr.read": Operation("Read a QR code and its statistics", schemas.QR_READ),
    "qr.add": Operation("Add a QR code", schemas.QR_ADDED, qr.NewQr, (*_FETCH, "colours_too_close", "link_branded")),
    "qr.update": Operation(
        "Change a QR code", schemas.DONE, qr.QrChanges, (*_FETCH, "colours_too_close", "link_branded")
    ),
    "qr.delete": _delete("a QR code"),
    "campaigns.index": _list("campaigns", "campaigns", "CampaignListed"),
    "campaigns.read": _read("a campaign", "CampaignListed"),
    "campaigns.add": Operation(
        "Add a campaign",
        schemas.ref("Campaign"),
        campaigns.NewCampaign,
        ("plan_feature", "campaign_name_taken", "campaign_slug_taken"),
    ),
    "campaigns.assign": Operation("Put a link into a campaign", schemas.DONE),
    "campaigns.update": Operation(
        "Change a campaign",
        schemas.ref("Campaign"),
        campaigns.CampaignChanges,
        ("campaign_name_taken", "campaign_slug_taken"),
    ),
    "campaigns.delete": _delete("a campaign"),
    "channels.index": _list("channels", "channels", "Channel"),
    "channels.read": Operation("List the items of a channel", listing("items", "ChannelItem"), query=PAGING),
    "channels.add": Operation("Add a channel", schemas.CHANNEL_ADDED, channels.NewChannel, ("channel_name_taken",)),
    "channels.assign": Operation("Put an item on a channel", schemas.DONE),
    "channels.update": Operation("Change a channel", schemas.DONE, channels.ChannelChanges, ("channel_name_taken",)),
    "channels.delete": _delete("a channel"),
    "plans.index": Operation("List plans", all_of("Plan")),
    "plans.subscribe": Operation("Subscribe a user to a plan", schemas.DONE, plans.Subscription),
    "users.index": Operation("List users", all_of("User"), query=_USER_QUERY, codes=("other_secret",)),
    "users.read": Operation("Read a user", reading("User"), codes=("other_secret",)),
    "users.add": Operation(
        "Register a user", schemas.USER_ADDED, users.NewUser, ("username_taken", "email_taken", "plan_not_premium")
    ),
    "users.delete": _delete("a user", "delete_self", "delete_last_administrator", "other_secret"),
    "users.login_link": Operation("Make a link that signs a user in", schemas.LOGIN_LINK),
    "openapi.document": Operation("Read this document", schemas.DOCUMENT, tagged=True),
}
