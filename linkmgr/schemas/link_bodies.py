"""Bodies of links, and the columns that they become."""

from typing import Any

from marshmallow import ValidationError, post_load, validates_schema

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.aliases import own_words, refuse_own_words
from linkmgr.core.fields.bodies import Body
from linkmgr.core.fields.links import targets_of
from linkmgr.core.web import passwords

# Clients send these defaults with every link. A create with nothing else returns the existing link of the URL, and an
# update with nothing else leaves it so.
_DEFAULTS: Row = {
    "type": {"type": "direct", "splash_id": None, "overlay_id": None},
    "status": "public",
    "campaign": 0,
    "channel": [],
    "geotarget": {},
    "devicetarget": {},
    "languagetarget": {},
    "variants": [],
    "rules": [],
    "deeplink": {},
    "parameters": [],
    "maxclicks": 0,
    "forwardquery": False,
    "pixels": [],
}


class LinkBody(Body):
    """Body of a link, which has only the members that were sent. That of a create has none with their defaults."""

    @validates_schema
    def refuse_reserved_alias(self, loaded: Row, **_: Any) -> None:
        """Refuse an alias that is a page of our own host. Without `domain`, the statement of an update decides."""
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
        return _without_defaults(loaded) | ({"forwardquery": loaded["forwardquery"]} if has_own else {})


def link_to_row(new: Row) -> Row:
    return {"targets": targets_of(new), **_to_columns(new)}


def link_to_changes(changes: Row) -> Row:
    changed = not _without_defaults(changes).keys() <= {"url", "campaign", "channel"}
    moved = {"reserved": [*own_words()]} if changes.keys() & {"custom", "domain"} else {}
    return {"changed": changed, "targets": targets_of(changes), **moved, **_to_columns(changes)}


def _without_defaults(loaded: Row) -> Row:
    return {name: value for name, value in loaded.items() if value not in ("", _DEFAULTS.get(name, ""))}


def _to_columns(loaded: Row) -> Row:
    columns: Row = loaded | loaded.get("type", {})
    if "password" in columns:
        password = columns.pop("password")
        columns["password_hash"] = passwords.hashed(password) if password else ""
    return columns
