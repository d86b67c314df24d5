"""Bodies of links, and the columns that they become."""

from typing import Any

from marshmallow import ValidationError, post_load, validates_schema

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.aliases import refuse_own_words
from linkmgr.core.fields.bodies import Body
from linkmgr.core.fields.links import LinkType
from linkmgr.core.web import passwords


class LinkBody(Body):
    """Body of a link, which has only the members that were sent. That of a create has none with their defaults, which
    clients send with every link: one with nothing else returns the existing link of the URL."""

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
        return {
            name: value
            for name, value in loaded.items()
            if (value and value not in (self.fields[name].metadata["default"], LinkType.DIRECT))
            or (has_own and name == "forwardquery")
        }


def link_columns(loaded: Row) -> Row:
    """Return the columns of the members that were sent. Most have their names. `domain` and `channel` are none."""
    columns: Row = loaded | loaded.get("type", {})
    if alias := columns.pop("custom", ""):
        columns |= {"alias": alias, "custom": True}
    if "password" in columns:
        password = columns.pop("password")
        columns["password_hash"] = passwords.hashed(password) if password else None
    return columns
