"""The form of a link. Its fields are the members of the bodies of the API, and so are their messages.

A form and a stored link become the same record: the body that the API takes, with all members and with ids as text.
"""

from flask import request

from linkmgr.db.statements import Row
from linkmgr.pages import signed_in
from linkmgr.pages.console import forms
from linkmgr.pages.console.forms import FormData, lines

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
LABELS = {
    "url": "Target", "custom": "Alias", "domain": "Domain", "password": "Password", "expiry": "Expiry", "type": "Type",
    "geotarget": "Countries", "devicetarget": "Devices", "languagetarget": "Languages", "parameters": "Parameters",
    "metatitle": "Title", "metadescription": "Preview text", "metaimage": "Preview image", "description": "Note",
    "pixels": "Pixels", "campaign": "Campaign", "channel": "Channels", "deeplink": "App links", "status": "Status",
}  # fmt: skip
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


def half_filled(record: Row) -> dict[str, str]:
    """Return the messages about rows that lack something. The API ignores such elements."""
    pairs = {member: names for member, names in PAIRS.items() if member != "parameters"}
    messages = {
        member: f"Fill in both {first} and {second}, or neither."
        for member, (first, second) in pairs.items()
        if not all(row[first] and row[second] for row in record.get(member, ()))
    }
    if not all(row["name"] for row in record.get("parameters", ())):
        messages["parameters"] = "Fill in the name of each parameter, or clear its value."
    return messages
