"""The form of a link. Its fields are the members of the bodies of the API, and so are their messages.

A form and a stored link become the same record: the body that the API takes, with all members and with ids as text.
"""

from datetime import UTC, datetime, timedelta

from flask import flash, g, request

from linkmgr.db.statements import Row
from linkmgr.fields.base import problems
from linkmgr.fields.countries import NAMES
from linkmgr.fields.languages import LANGUAGES
from linkmgr.pages import plan_use, signed_in
from linkmgr.pages.console import forms
from linkmgr.pages.console.forms import FormData, lines
from linkmgr.resources.urls import Link

TEXTS = ("url", "custom", "domain", "password", "expiry", "type", "metatitle", "metadescription", "metaimage",
         "description", "campaign", "status")  # fmt: skip
LISTS = ("pixels", "channel")
# Members with rows of two controls, and the names of these.
PAIRS = {
    "geotarget": ("location", "link"),
    "devicetarget": ("device", "link"),
    "languagetarget": ("language", "link"),
    "parameters": ("name", "value"),
}
STORES = ("apple", "google")  # of the member `deeplink`
LABELS: dict[str, str | tuple[str, str]] = Link.labels() | {
    "metatitle": ("Title", "The name of the link here, and in previews of chats and social networks."),
    "description": ("Note", "Only you see it."),
    "status": ("Status", "A private link works, but does not appear on the pages of campaigns."),
}
DEVICES = {
    name.lower(): name
    for name in (
        "iPhone",
        "iPad",
        "Android",
        "Mac",
        "Windows",
        "Linux",
        "ChromeOS",
        "Phone",
        "Tablet",
        "Mobile",
        "Desktop",
    )
}
COUNTRIES = {name.lower(): name for name in sorted(names[0] for names in NAMES.values())}
NAMES_OF_LANGUAGES = {name.lower(): name.capitalize() for name in sorted(LANGUAGES.values())}
# The fields of errors that the database reports.
FIELDS = {
    "alias_taken": "custom", "domain_unknown": "domain", "link_branded": "url", "campaign_unknown": "campaign",
    "splash_unknown": "type", "overlay_unknown": "type", "pixel_unknown": "pixels", "channel_unknown": "channel",
}  # fmt: skip


def _pairs(form: FormData, member: str) -> list[Row]:
    """Return the rows of a member in which something was typed. The value of a parameter can be blank."""
    first, second = PAIRS[member]
    rows = zip(form.getlist(f"{member}.{first}"), form.getlist(f"{member}.{second}"), strict=False)
    pairs = [(lines(one).strip(), lines(other) if second == "value" else lines(other).strip()) for one, other in rows]
    return [{first: one, second: other} for one, other in pairs if one or other.strip()]


def from_form(form: FormData) -> Row:
    stores = {store: url for store in STORES if (url := form.get(f"deeplink.{store}", "").strip())}
    return (
        {name: lines(form.get(name, "")) for name in TEXTS}
        | {"expiry": signed_in.from_control(form.get("expiry", ""))}
        | {name: sorted(set(form.getlist(name))) for name in LISTS}
        | {name: _pairs(form, name) for name in PAIRS}
        | {"deeplink": stores | ({"auto": True} if form.get("deeplink.auto") else {})}
    )


def from_link(link: Row) -> Row:
    """Return the record of a stored link. The password is not readable."""
    texts = {name: str(link.get(name) or "") for name in TEXTS} | {"password": ""}
    deeplink = {name: value for name, value in link["deeplink"].items() if value}
    return (
        texts
        | {name: sorted(str(row_id) for row_id in link[name]) for name in LISTS}
        | {name: link[name] for name in PAIRS}
        | {"expiry": link["expiry"] or "", "deeplink": deeplink}
    )


def changes(record: Row, stored: Row) -> Row:
    """Return the members that differ from the stored ones. A checkbox removes the password."""
    return forms.differing(record, stored) | ({"password": ""} if request.form.get("password.remove") else {})


def check(record: Row) -> dict[str, str]:
    """Return the messages about rows that lack something, which the API ignores, and mark the rows that are wrong."""
    wrong = {
        (member, number)
        for member in PAIRS
        for number, row in enumerate(record.get(member, ()))
        if _lacks(member, row) or problems(Link.updates(), {member: [row]})
    }
    g.wrong_rows = wrong
    return {
        member: "Fill in the name of each parameter, or clear its value." if member == "parameters"
        else f"Fill in both {names[0]} and {names[1]}, or neither."
        for member, names in PAIRS.items()
        if any(_lacks(member, row) for row in record.get(member, ()))
    }  # fmt: skip


def _lacks(member: str, row: Row) -> bool:
    first, second = PAIRS[member]
    return not (row[first] and (row[second] or member == "parameters"))


def warn_expired(members: Row) -> None:
    if (expiry := members.get("expiry")) and signed_in.parse_utc(expiry) <= datetime.now(UTC):
        flash("The expiry is in the past: visitors see a page that says the link has expired.", "warning")


def choices() -> Row:
    """Return what the form offers: names for targets, presets of the expiry, and what the plan lacks."""
    today = datetime.now(g.zone).replace(hour=23, minute=59)
    presets = {"Tonight": 0, "In a week": 7, "In 30 days": 30, "In a year": 365}
    return {
        "devices": DEVICES,
        "countries": COUNTRIES,
        "languages": NAMES_OF_LANGUAGES,
        "pairs": PAIRS,
        "expiries": {f"{today + timedelta(days=days):%Y-%m-%dT%H:%M}": label for label, days in presets.items()},
        "lacks": {
            name: "" if plan_use.is_included(g.account, name) else "not in your plan"
            for name in ("alias", "geo", "device", "parameters")
        },
        "wrong_rows": g.get("wrong_rows", ()),
    }
