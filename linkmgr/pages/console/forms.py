"""The form of a link. Its fields are the members of the bodies of the API, and so are their messages.

A form and a stored link become the same record: the body that the API takes, with all members and with ids as text.
Their difference is what an update sends.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import psycopg2
from marshmallow import Schema
from werkzeug.datastructures import MultiDict

from linkmgr.db.statements import Row
from linkmgr.fields.base import load, problems
from linkmgr.web import errors
from linkmgr.web.errors import AppError

Form = MultiDict[str, str]

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
_FIELDS = {
    "alias_taken": "custom", "domain_unknown": "domain", "link_branded": "url", "campaign_unknown": "campaign",
    "splash_unknown": "type", "overlay_unknown": "type", "pixel_unknown": "pixels", "channel_unknown": "channel",
}  # fmt: skip
_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN)
GENERAL = ""  # the name of a message that is about no field


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\0", "").strip("\n")  # no text of PostgreSQL has a NUL character


def _pairs(form: Form, member: str) -> list[Row]:
    """Return the rows of a member in which something was typed."""
    first, second = PAIRS[member]
    rows = zip(form.getlist(f"{member}.{first}"), form.getlist(f"{member}.{second}"), strict=False)
    pairs = [(_lines(one).strip(), _lines(other).strip()) for one, other in rows]
    return [{first: one, second: other} for one, other in pairs if one or other]


def from_form(form: Form) -> Row:
    stores = {store: url for store in STORES if (url := form.get(f"deeplink.{store}", "").strip())}
    return (
        {name: _lines(form.get(name, "")) for name in TEXTS}
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
        | {"expiry": (link["expiry"] or "").replace(" ", "T"), "deeplink": deeplink}
    )


def changes(record: Row, stored: Row, *, remove_password: bool) -> Row:
    """Return the members that differ from the stored ones."""
    changed = {name: value for name, value in record.items() if value != stored[name]}
    return changed | ({"password": ""} if remove_password else {})


def _half(record: Row) -> dict[str, str]:
    """Return the messages about rows with one of two controls filled. The API ignores such elements."""
    return {
        member: f"Fill in both {first} and {second}, or neither."
        for member, (first, second) in PAIRS.items()
        if not all(row[first] and row[second] for row in record.get(member, ()))
    }


def submit(schema: type[Schema], members: Row, store: Callable[[Row], Any]) -> dict[str, str]:
    """Check the members and store them. Return the messages by field; without any, the members are stored."""
    messages = {name: f"{LABELS[name]} {problem}." for name, problem in problems(schema, members).items()}
    messages |= _half(members)
    if messages:
        return messages
    try:
        store(load(schema, members))
    except (AppError, psycopg2.IntegrityError) as error:
        app_error = error if isinstance(error, AppError) else errors.from_constraint(error)
        if app_error is None or app_error.status not in _REFUSED:
            raise
        return {_FIELDS.get(app_error.code, GENERAL): app_error.message}
    return {}
