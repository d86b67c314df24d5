"""The form of an API key. Its fields are the members of the bodies of the API."""

import re
from typing import Any

from flask import g

from linkmgr.api import keys as api
from linkmgr.db.statements import Row
from linkmgr.pages.account import confirm_password
from linkmgr.pages.console import forms
from linkmgr.pages.console.forms import FormData, lines
from linkmgr.repository import api_keys, overviews
from linkmgr.web import scopes
from linkmgr.web.errors import AppError

MAX_CHOICES = 200
LABELS = {
    "name": "Name", "scopes": "Scopes", "domains": "Domains", "own_only": "Own rows only", "expires": "Expiry",
    "allowed_ips": "IP addresses", "current_password": "Current password",
}  # fmt: skip
_WORDS = {
    "links": "Links", "qr": "QR codes", "bio": "Bio pages", "campaigns": "Campaigns", "channels": "Channels",
    "splash": "Splash pages", "overlay": "CTA overlays", "pixels": "Pixels", "domains": "Domains",
    "stats": "Statistics", "webhooks": "Webhooks, events", "imports": "Imports",
    "keys": "API keys", "account": "Account",
}  # fmt: skip
ACTIONS = (scopes.READ, scopes.CREATE, scopes.WRITE)
_MINUTES = len("2030-12-31 23:59")  # of browsers that send no seconds


def from_form(form: FormData) -> Row:
    expires = lines(form.get("expires", "")).strip().replace("T", " ")
    return {
        "name": lines(form.get("name", "")),
        "scopes": sorted(set(form.getlist("scopes"))),
        "domains": [int(text) if re.fullmatch("[0-9]{1,18}", text) else text for text in form.getlist("domains")],
        "own_only": bool(form.get("own_only")),
        "expires": f"{expires}:00" if len(expires) == _MINUTES else expires,
        "allowed_ips": lines(form.get("allowed_ips", "")).replace(",", " ").split(),
    }


def from_key(key: Row) -> Row:
    return {name: key[name] for name in ("name", "own_only", "allowed_ips")} | {
        "scopes": sorted(key["scopes"]),
        "domains": sorted(key["domains"], key=str),
        "expires": key["expires"] or "",
    }


def changes(record: Row, stored: Row) -> Row:
    """Return the members that differ, in any order. `own_only` cannot be changed."""
    ordered = record | {"domains": sorted(record["domains"], key=str)}
    return {name: value for name, value in forms.differing(ordered, stored).items() if name != "own_only"}


def check(_members: Row) -> dict[str, str]:
    """Ask for the current password, because a key gives lasting access to whoever is at the browser."""
    try:
        confirm_password()
    except AppError as error:
        return {"current_password": error.message}
    return {}


def _table() -> list[tuple[str, list[str]]]:
    """Return the words with their scopes, by action; "" if an action has none."""
    names, labels = scopes.names(), dict(_WORDS)
    for name in names:
        if ":" in name:
            labels.setdefault(name.partition(":")[0], name.partition(":")[0].capitalize())
    rows = [(label, [f"{word}:{action}" for action in ACTIONS]) for word, label in labels.items()]
    return [(label, [scope if scope in names else "" for scope in row]) for label, row in rows]


def choices() -> Row:
    rows, owner = overviews.choices(g.user_id, limit=MAX_CHOICES), api_keys.owner(g.user_id)
    return {
        "table": _table(),
        "actions": ACTIONS,
        "is_admin": owner["admin"],
        "email": owner["email"],
        "domains": [row for row in rows if row["kind"] == "domain"],
    }


OPTIONS: dict[str, Any] = {
    "name": "key",
    "plural": "keys",
    "noun": "API key",
    "blueprint": "keys",
    "id_name": "key_id",
    "new": api.NewKey,
    "changed": api.KeyChanges,
    "from_form": from_form,
    "from_row": from_key,
    "read": api_keys.read,
    "labels": LABELS,
    "fields": {"domains_unknown": "domains", "admin_scope": "scopes"},
    "changes": changes,
    "check": check,
    "choices": choices,
    "after": "keys",
}
