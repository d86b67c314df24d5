"""Versions of the rows that updates and deletes change: random numbers, which the triggers `change_version` set."""

from linkmgr.db.statements import run

# By blueprint, whose paths have the id of the row.
TABLES = {
    "bio": "bios",
    "campaigns": "campaigns",
    "channels": "channels",
    "domains": "domains",
    "imports": "imports",
    "keys": "api_keys",
    "overlay": "overlays",
    "pixels": "pixels",
    "qr": "qrs",
    "splash": "splash_pages",
    "urls": "links",
    "webhooks": "webhooks",
}
_OF_USERS = ("account", "default_key", "plans", "users")  # blueprints that change the caller, or the user in the path
_USER = "SELECT version::text FROM users WHERE id = %(user_id)s FOR NO KEY UPDATE"
_STATEMENTS = {
    blueprint: f"SELECT version::text FROM {table} WHERE user_id = %(user_id)s AND id = %(row_id)s FOR NO KEY UPDATE"  # noqa: S608 - static SQL
    for blueprint, table in TABLES.items()
}


def lock(user_id: int, blueprint: str, ids: dict[str, int]) -> str | None:
    """Return the version of the row that a request changes, or None if there is none. Until the transaction ends, no
    other transaction changes the row. `ids` are those in the path."""
    if blueprint in TABLES:
        [row_id] = ids.values()
        row = run(_STATEMENTS[blueprint], user_id=user_id, row_id=row_id)
    elif blueprint in _OF_USERS:
        row = run(_USER, user_id=ids.get("user_id", user_id))
    else:
        row = None
    return None if row is None else str(row["version"])
