"""The form of a link: messages about incomplete rows, and what the form offers."""

from datetime import UTC, datetime, timedelta

from flask import flash, g

from linkmgr.db.statements import Row
from linkmgr.fields.bodies import problems
from linkmgr.pages import plan_use, signed_in
from linkmgr.resources.urls import Link

# Members with rows of two controls, and the names of these
PAIRS = {name: field.parts for name, field in Link.controls().items() if hasattr(field, "parts")}
# The fields of errors that the database reports.
FIELDS = {
    "alias_taken": "custom", "domain_unknown": "domain", "link_branded": "url", "campaign_unknown": "campaign",
    "splash_unknown": "type", "overlay_unknown": "type", "pixel_unknown": "pixels", "channel_unknown": "channel",
}  # fmt: skip


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
        "pairs": PAIRS,
        "expiries": {f"{today + timedelta(days=days):%Y-%m-%dT%H:%M}": label for label, days in presets.items()},
        "lacks": {
            name: "" if plan_use.is_included(g.account, name) else "not in your plan"
            for name in ("alias", "geo", "device", "parameters")
        },
        "wrong_rows": g.get("wrong_rows", ()),
    }
