"""The statements that resources share, which differ only by the table and its columns, and what a statement raises if a
name is taken."""

from collections.abc import Callable, Iterator
from typing import Any, Unpack

from psycopg2.errors import UniqueViolation

from linkmgr.db.statements import Page, Paging, Row, page, row, rows, run
from linkmgr.db.transaction import undoable
from linkmgr.errors import existing
from linkmgr.settings import settings

BATCH = 500  # rows of an export in memory at a time
Batch = Callable[[int, int], list[Row]]  # of a user, behind an id


class Table:
    """The rows of users in a table.

    A create and an update write the columns `stored` from the members of the same names, and the columns `added` and
    `changed` from their expressions. An update leaves the columns in `fixed`. `columns` are the columns of a
    record and its `version`. `write` executes the statements that store a row. Triggers count the rows of a table that
    `has_usage`.
    """

    def __init__(
        self,
        name: str,
        noun: str,
        stored: str = "",
        *,
        fixed: str = "",
        added: dict[str, str] | None = None,
        changed: dict[str, str] | None = None,
        columns: str = "*, created AS date, version::text",
        write: Callable[..., Row | None] = run,
        has_usage: bool = True,
    ) -> None:
        self._noun, self._write = noun, write
        inserted = {column: f"%({column})s" for column in stored.split()} | (added or {})
        updated = {
            column: f"coalesce(%({column})s, {column})" for column in stored.split() if column not in fixed.split()
        } | (changed or {})
        values = ", ".join(f"{column} = {value}" for column, value in updated.items())
        row_of_user = "user_id = %(user_id)s AND id = %(row_id)s"
        self._index = f"""
            SELECT {columns} FROM {name} WHERE user_id = %(user_id)s AND id < %(after)s
             ORDER BY id DESC LIMIT %(limit)s OFFSET %(offset)s
        """  # noqa: S608 - static SQL
        self._total = f"SELECT count(*) FROM {name} WHERE user_id = %(user_id)s"  # noqa: S608
        if has_usage:
            self._total = f"SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = '{name}'"  # noqa: S608
        self._batch = f"""
            SELECT {columns} FROM {name} WHERE user_id = %(user_id)s AND id > %(after)s ORDER BY id LIMIT %(limit)s
        """  # noqa: S608
        self._read = f"SELECT {columns} ", f" FROM {name} WHERE {row_of_user}"
        self._insert = f"""
            INSERT INTO {name} (user_id, {", ".join(inserted)}) VALUES (%(user_id)s, {", ".join(inserted.values())})
            RETURNING {columns}
        """  # noqa: S608
        self._update = f"UPDATE {name} SET {values} WHERE {row_of_user} RETURNING {columns}"  # noqa: S608
        self._delete = f"DELETE FROM {name} WHERE {row_of_user} RETURNING id"  # noqa: S608

    def index(self, user_id: int, **paging: Unpack[Paging]) -> Page:
        return page(self._index, self._total, user_id=user_id, base=settings().base_url, **paging)

    def batch(self, user_id: int, after: int) -> list[Row]:
        """Return the next rows behind an id, oldest first."""
        return rows(self._batch, user_id=user_id, after=after, limit=BATCH, base=settings().base_url)

    def read(self, user_id: int, row_id: int, also: str = "", **params: Any) -> Row:
        """Return the record. `also` is the SQL of further columns, each after a comma, with their parameters."""
        params |= {"user_id": user_id, "row_id": row_id, "base": settings().base_url}
        return existing(row(also.join(self._read), **params), self._noun)

    def add(self, user_id: int, members: Row) -> Row:
        added = self._write(self._insert, **members, user_id=user_id, base=settings().base_url)
        assert added is not None
        return added

    def update(self, user_id: int, row_id: int, members: Row) -> Row:
        """Write the members that are not None."""
        params = members | {"user_id": user_id, "row_id": row_id, "base": settings().base_url}
        return existing(self._write(self._update, **params), self._noun)

    def delete(self, user_id: int, row_id: int) -> None:
        existing(run(self._delete, user_id=user_id, row_id=row_id), self._noun)


def in_batches(batch: Batch, user_id: int, after: int = 0) -> Iterator[list[Row]]:
    """Yield the batches of all rows of a user behind an id, in the order of the ids.

    A batch is a statement of its own: an export of any size keeps no transaction open. Rows that are added meanwhile
    may be missing.
    """
    while records := batch(user_id, after):
        after = records[-1]["id"]
        yield records


# --- names that are unique over all users: aliases, campaign slugs and domains. Those of a deleted user are available
# at once, although background jobs delete the rows later.

# Statements by violated constraint. Each releases the names whose owner was deleted, and returns a row if it did. The
# tables are of the schema `public`, because restricted keys do not see rows of deleted users.
_RELEASES = {
    "alias_taken": """
        WITH holders AS (
            -- An update of only the domain brings no alias: the link keeps its own.
            SELECT link_id, bio_id
              FROM aliases
             WHERE domain_id = 0
               AND (alias = ANY (%(aliases)s::text[])
                    OR alias = (SELECT alias FROM links WHERE id = %(link_id)s::bigint))),
        links_deleted AS (
            DELETE FROM public.links
             WHERE id IN (SELECT link_id FROM holders) AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
            RETURNING 1),
        bios_deleted AS (
            DELETE FROM public.bios
             WHERE id IN (SELECT bio_id FROM holders) AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
            RETURNING 1)
        SELECT 1 FROM links_deleted UNION ALL SELECT 1 FROM bios_deleted
    """,
    "campaign_slug_taken": """
        UPDATE public.campaigns SET slug = NULL
         WHERE slug = %(slug)s AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
        RETURNING 1
    """,
    # Rename the domain instead of deleting it: links may still refer to it.
    "domain_taken": """
        UPDATE public.domains SET host = id || '.invalid'
         WHERE host = split_part(%(domain)s, '://', 2) AND NOT EXISTS (SELECT FROM users WHERE users.id = user_id)
        RETURNING 1
    """,
}


def release(constraint: str | None, **params: Any) -> bool:
    """Release the names that violate a constraint if their owner was deleted. Return False if there are none."""
    statement = _RELEASES.get(constraint or "")
    return statement is not None and run(statement, **params) is not None


def run_with_name(sql: str, **params: Any) -> Row | None:
    """Run a statement that stores the parameter alias, slug or domain, and return its first row. If the name belongs
    to a deleted user, release it and run the statement again."""
    try:
        with undoable():
            return run(sql, **params)
    except UniqueViolation as error:
        own = {"aliases": [params.get("alias")], "link_id": params.get("link_id")}
        if not release(error.diag.constraint_name, **params | own):
            raise
    with undoable():
        return run(sql, **params)


# --- versions of the rows that updates and deletes change: random numbers, which the triggers `change_version` set

# By blueprint, whose paths have the id of the row. The rows of a deleted user are deleted in this order, so that no
# remaining row refers to a deleted one: links first, domains last.
TABLES = {
    "urls": "links",
    "bio": "bios",
    "campaigns": "campaigns",
    "channels": "channels",
    "imports": "imports",
    "keys": "api_keys",
    "overlay": "overlays",
    "pixels": "pixels",
    "qr": "qrs",
    "splash": "splash_pages",
    "webhooks": "webhooks",
    "domains": "domains",
}
_OF_USERS = ("account", "default_key", "plans", "users")  # blueprints that change the caller, or the user in the path
_USER = "SELECT version::text FROM users WHERE id = %(user_id)s FOR NO KEY UPDATE"
_STATEMENTS = {
    blueprint: f"SELECT version::text FROM {table} WHERE user_id = %(user_id)s AND id = %(row_id)s FOR NO KEY UPDATE"  # noqa: S608 - static SQL
    for blueprint, table in TABLES.items()
}


def lock_version(user_id: int, blueprint: str, ids: dict[str, int]) -> str | None:
    """Return the version of the row that a request changes, or None if there is none. Until the transaction ends, no
    other transaction changes the row. `ids` are those in the path."""
    stored = None
    if blueprint in TABLES:
        [row_id] = ids.values()
        stored = run(_STATEMENTS[blueprint], user_id=user_id, row_id=row_id)
    elif blueprint in _OF_USERS:
        stored = run(_USER, user_id=ids.get("user_id", user_id))
    return None if stored is None else str(stored["version"])


def try_lock(user_id: int, name: str) -> bool:
    """Lock what a user does under a name until the transaction ends. Return False if another transaction has the
    lock."""
    result = run(
        "SELECT pg_try_advisory_xact_lock(hashtextextended(%(name)s, %(user_id)s::bigint)) AS locked",
        user_id=user_id,
        name=name,
    )
    assert result is not None
    return bool(result["locked"])
