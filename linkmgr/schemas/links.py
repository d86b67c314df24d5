from contextlib import suppress
from typing import Any, ClassVar

from marshmallow import ValidationError, post_load, pre_load, validates_schema

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.aliases import Alias, own_host, refuse_own_words
from linkmgr.core.fields.base import (
    MAX_ID,
    Boolean,
    Choice,
    Integer,
    Password,
    Shown,
    Target,
    Text,
    Timestamp,
    Url,
)
from linkmgr.core.fields.bodies import Body
from linkmgr.core.fields.external import MAX_METADATA, ExternalId, Metadata
from linkmgr.core.fields.links import (
    DeepLink,
    Expiry,
    IdOrIds,
    IdOrString,
    Ids,
    LinkDomain,
    LinkType,
    Parameters,
    Start,
    Targets,
)
from linkmgr.core.fields.member import member
from linkmgr.core.fields.resource import (
    DETAIL,
    EXPORT,
    READ,
    Resource,
    Stored,
    Words,
    created,
    row_id,
    updated,
)
from linkmgr.core.fields.shapes import object_of
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.core.web import passwords
from linkmgr.core.web.request import default_domain, user_id, warn
from linkmgr.repository import domains, links
from linkmgr.visits import audience
from linkmgr.visits.rules import MAX_RULES, Rules
from linkmgr.visits.variants import Variants

MAX_DESCRIPTION = 1000
HEALTH = {"broken": "Broken", "ok": "Reachable", "unchecked": "Not checked"}
RECORD, TOTALS = "record", "list export"  # where a member is shown
EXISTING = (
    "You already have a link of this URL alone, which this is: no new one was created, and deleting it "
    "deletes the one that you had. For another link, send another member too, such as title."
)
_URL = {"type": "string", "pattern": "^https?://"}
_URLS = {"type": "object", "additionalProperties": {"type": "string"}, "title": "Texts"}
_COUNT = {"type": "integer", "minimum": 0}


def warn_lost_externalids(lost: list[str]) -> None:
    """Warn that links were restored without external ids that other links have now."""
    for externalid in lost:
        warn(f"The member 'externalid' was not restored: another link has '{externalid}' now.")


def warn_unsent_domain() -> None:
    """Warn once in a response that new links are not on the default domain of the account."""
    if domain := default_domain():
        default = f'For your default domain, {domain}, send "default" as domain'
        warn(f'Without domain, a new link is on this service. {default}, or "" for no warning.', prefix="")


class LinkAlias(Alias):
    def host(self, data: Row) -> str | None:
        if getattr(self.parent, "is_update", False) and "domain" not in data:
            return "any"
        with suppress(ValidationError):
            return str(LinkDomain(allow_empty=True).deserialize(data.get("domain") or "")) or own_host()
        return None

    def is_allowed(self, host: str) -> bool:
        return domains.has_wide_aliases(user_id(), host)


class LinkBody(Body):
    """Body of a link, which has only the members that were sent. That of a create has none with
    their defaults, which clients send with every link: one with nothing else returns the existing
    link of the URL."""

    @pre_load
    def drop_unsent(self, data: Row, **_: Any) -> Row:
        if not self.is_update and "domain" not in data:
            warn_unsent_domain()
        sent: Row = super().drop_unsent(data)
        return sent

    @validates_schema
    def refuse_reserved_alias(self, loaded: Row, **_: Any) -> None:
        """Refuse an alias that is a page of our own host. Without `domain`, the statement of an
        update decides."""
        is_ours = loaded.get("domain") == "" if self.is_update else not loaded.get("domain")
        if is_ours and "custom" in loaded:
            try:
                refuse_own_words(loaded["custom"])
            except ValidationError as error:
                raise ValidationError(error.messages, "custom") from None

    @post_load
    def complete(self, loaded: Row, **_: Any) -> Row:
        if self.is_update:
            return loaded
        has_own = loaded.get("domain") and "forwardquery" in loaded  # its domain may have another default
        return {
            name: value
            for name, value in loaded.items()
            if (value and value not in (self.fields[name].metadata["default"], LinkType.DIRECT))
            or (has_own and name == "forwardquery")
        }


class Link(Resource):
    body = LinkBody
    also_shown: ClassVar[dict[str, bool]] = {"short": False}

    id = row_id()
    alias = member(Shown({"type": "string"}), "", "summer")
    shorturl = member(Shown(_URL), "", "https://go.example.org/summer")
    longurl = member(Shown(_URL), "", "https://example.com/sale", shown=READ)
    title = member(
        Text(allow_empty=True),
        "The name of the link in lists and the search, which visitors do not see. By default it is "
        "the `metatitle`.",
        "Summer sale",
        label="Title",
    )
    custom = member(
        LinkAlias(allow_empty=True),
        "The alias: the last part of the short URL, unique on its domain, where upper and lower case "
        "differ unless it has `ignorecase`. Without it, the service generates 8 characters.",
        "summer",
        label="Alias",
        shown=DETAIL,
    )
    domain = member(
        LinkDomain(allow_empty=True),
        'The domain of the short URL. `""` means this service, and `default` the `domain` of your account.',
        "https://go.example.com",
        label="Domain",
    )
    password = member(
        Password(1, allow_empty=True, load_only=True),
        "Visitors must enter this password on every visit.",
        "correct horse",
        label="Password",
        removed="",
    )
    haspassword = member(Shown({"type": "boolean"}), "", False, shown=DETAIL)
    starts = member(
        Start(allow_empty=True, allow_none=True),
        "The link begins to work at this time.",
        "2026-12-01 08:00:00",
        label="Start",
        removed="",
        shown=DETAIL,
    )
    expiry = member(
        Expiry(allow_empty=True, allow_none=True),
        "The link stops working at this time.",
        "2030-12-31 23:59:59",
        label="Expiry",
        removed="",
        shown=DETAIL,
    )
    maxclicks = member(
        Integer(0, MAX_ID),
        "The number of clicks after which the link stops working, with those before the limit was "
        "set. `0` means no limit. A scan of a QR code that leads to the link is a click.",
        100,
        label="Maximum clicks",
        default=0,
        removed=0,
        shown=DETAIL,
    )
    confirmclick = member(
        Boolean(),
        "Shows visitors of a link with `maxclicks` a page with a button, whose click alone counts: "
        "mail scanners open links as people do, and would use them up.",
        False,
        label="Ask for a click before the target",
        default=False,
        shown=DETAIL,
    )
    expiredurl = member(
        Target(allow_empty=True),
        "The target before `starts`, after `expiry` and beyond `maxclicks`, in place of a page.",
        "https://example.com/over",
        label="Target while the link does not work",
        shown=DETAIL,
    )
    type = member(
        LinkType(),
        "How the target is shown: `direct` redirects to it, `frame` shows it in a frame, `splash` or "
        "the id of one of your splash pages behind this page, `overlay-<id>` below this CTA overlay.",
        "overlay-17",
        label="How the target is shown",
        default="direct",
        shown=DETAIL,
    )
    location = member(Shown(_URLS), "", {"germany": "https://example.de/"}, shown=RECORD)
    device = member(Shown(_URLS), "", {"iphone": "https://example.com/app"}, shown=RECORD)
    rules = member(
        Rules(),
        f"Targets by conditions, at most {MAX_RULES}. The first rule of which all conditions hold decides.",
        [{"when": {"country": ["Germany", "AT"]}, "url": "https://example.com/de"}],
        label="Rules",
        shown=DETAIL,
    )
    geotarget = member(
        Targets(
            "location", audience.country_problem, "A country: its English name or its ISO code.", "Germany"
        ),
        "Targets by the visitor's country.",
        [{"location": "Germany", "link": "https://example.de/sale"}],
        label="Countries",
        options=audience.COUNTRIES,
        shown=DETAIL,
    )
    devicetarget = member(
        Targets(
            "device",
            audience.device_problem,
            "A device: a model, a maker, a system (`iphone`, `windows 10`, `android tablet`), or `phone`, "
            "`tablet` or `desktop`.",
            "iphone",
        ),
        "Targets by the visitor's device.",
        [{"device": "iphone", "link": "https://example.com/iphone"}],
        label="Devices",
        options=audience.DEVICES,
        shown=DETAIL,
    )
    languagetarget = member(
        Targets("language", audience.language_problem, "A language: its code or its English name.", "fr"),
        "Targets by the language that the visitor's browser prefers.",
        [{"language": "fr", "link": "https://example.com/fr"}],
        label="Languages",
        options=audience.NAMES_OF_LANGUAGES,
        shown=DETAIL,
    )
    variants = member(
        Variants(),
        "An experiment: each visitor gets one of 2 to 8 targets instead of `url`, by their weights, "
        "and keeps it as long as the service recognizes visitors. `[]` ends the experiment.",
        [
            {"name": "Blue button", "url": "https://example.com/blue", "weight": 50},
            {"name": "Red button", "url": "https://example.com/red", "weight": 50},
        ],
        label="Variants",
        shown=DETAIL,
    )
    parameters = member(
        Parameters(),
        "Added to the query of the target, where they replace those of equal names. At most "
        f"{MAX_URL} characters together.",
        [{"name": "utm_source", "value": "newsletter"}],
        label="Parameters",
        shown=DETAIL,
    )
    forwardquery = member(
        Boolean(),
        "Adds the query of the short URL to that of the target, where its values replace those of "
        f"equal names. A URL that would have more than {MAX_URL} characters stays without it. The "
        "default is `forwardquery` of the branded domain.",
        False,
        label="Forward the query of the short URL",
        default=False,
        shown=DETAIL,
    )
    clickid = member(
        Boolean(),
        "Adds a click id to the query of the target, by which your shop reports conversions: see the section "
        "about them. The account and the domain can turn it on for all their links. Targets in a frame, bots "
        "and previews get none.",
        False,
        label="Add a click id to the target",
        default=False,
        shown=DETAIL,
    )
    metatitle = member(
        Text(allow_empty=True),
        "The title in previews of social networks and chat programs.",
        "Summer sale",
        label="Preview title",
        shown=DETAIL,
    )
    metadescription = member(
        Text(MAX_DESCRIPTION, allow_empty=True, multiline=True),
        "The text in previews.",
        "Everything must go.",
        label="Preview text",
        shown=DETAIL,
    )
    metaimage = member(
        Url(allow_empty=True),
        "The image in previews.",
        "https://example.com/sale.png",
        label="Preview image",
        shown=DETAIL,
    )
    description = member(
        Text(MAX_DESCRIPTION, allow_empty=True, multiline=True),
        "A note for yourself.",
        "For the newsletter",
        label="Note",
    )
    pixels = member(
        Ids(),
        "The ids of your pixels that fire on a visit. An update replaces all of them.",
        [17],
        label="Pixels",
        shown=DETAIL,
    )
    campaign = member(
        IdOrString(allow_none=True),
        "The id of the campaign that the link is in. `0` removes the link from its campaign.",
        17,
        label="Campaign",
        removed=0,
    )
    channel = member(
        IdOrIds(),
        "The ids of channels that the link is added to, or one id. It stays in others; `[]` in an "
        "update removes it from all, `0` changes nothing.",
        [17],
        label="Channels",
    )
    channels = member(
        Shown({"type": "array", "items": {"type": "string"}}),
        "The names of its channels.",
        ["Newsletter"],
        shown=EXPORT,
    )
    deeplink = member(
        DeepLink(),
        "Opens an app on phones.",
        {"auto": True, "apple": "https://apps.apple.com/app/id1", "google": "https://play.google.com/store"},
        label="App links",
        shown=DETAIL,
    )
    status = member(
        Choice(("private", "public")),
        "`private` hides the link in the public list of its campaign.",
        "private",
        label="Status",
        default="public",
        shown=DETAIL,
    )
    url = member(
        Target(MAX_URL, required=True),
        "The target.",
        "https://example.com/sale",
        label="Target",
        shown=DETAIL,
    )
    date = created()
    updated = updated()
    clicks = member(Shown(_COUNT), "", 12, shown=TOTALS)
    uniqueclicks = member(Shown(_COUNT), "", 9, shown=TOTALS)
    blocked = member(
        Timestamp(dump_only=True, allow_none=True),
        "When an administrator blocked the link, whose visitors get a page that says so, or null. "
        "Links to a blocked host behave the same.",
        "2026-11-21 09:30:00",
        shown=DETAIL,
    )
    imported_clicks = member(Shown(_COUNT | {"type": ["integer", "null"]}), "", 1204)
    health = member(
        Shown(
            object_of(
                state={"type": "string", "enum": [*HEALTH]},
                reason={"type": "string", "description": "Why the last check failed, or why there is none."},
                url={"type": "string", "description": "The target that has this `reason`."},
                title={"type": "string", "description": "The title of the page, for links without `title`."},
                checked=Timestamp.json | {"type": ["string", "null"]},
            )
        ),
        "The last check of the targets.",
        {
            "state": "broken",
            "reason": "The response has the status 404.",
            "url": "https://example.com/sale",
            "title": "",
            "checked": "2026-11-21 09:30:00",
        },
    )
    externalid = member(
        ExternalId(allow_empty=True),
        "The id that the link has in a program of yours, unique among your links. `GET /api/urls?externalid=` finds "
        "the link, and `PUT /api/url/external/{externalid}` creates or changes it.",
        "order-17",
        label="External id",
        shown=DETAIL,
    )
    metadata = member(
        Metadata(),
        f"Any JSON object of at most {MAX_METADATA:,} bytes, for programs of yours. The service returns it, and does "
        "not search it. An update replaces all of it.",
        {"order": 17, "tags": ["spring", "shop"]},
        label="Metadata",
        removed={},
        shown=DETAIL,
    )
    extrapath = member(
        Boolean(),
        "Adds what follows the alias in the path of the short URL to that of the target. Of several links, "
        "the longest alias decides.",
        False,
        label="Add the rest of the path to the target",
        default=False,
        shown=DETAIL,
    )


def link_columns(loaded: Row) -> Row:
    """Return the columns of the members that were sent. Most have their names. `domain` and
    `channel` are none."""
    columns: Row = loaded | loaded.get("type", {})
    if alias := columns.pop("custom", ""):
        columns |= {"alias": alias, "custom": True}
    if "password" in columns:
        password = columns.pop("password")
        columns["password_hash"] = passwords.hashed(password) if password else None
    return columns


def create_link(user_id: int, members: Row) -> Row:
    return links.add(user_id, link_columns(members))


def change_link(user_id: int, link_id: int, members: Row) -> Row:
    return links.update(user_id, link_id, link_columns(members))


LINKS = Stored(
    Link,
    Words("link", path="url", plural="urls", table="links", file="links"),
    rows=links,
    create=create_link,
    change=change_link,
)
