"""Pages of lists: one statement reads the rows of a page and the total of the list, which may lag.

A page ends at MAX_BYTES, also before `limit` rows. `next` says where it goes on, so that no row is
lost by cursor. The number of the following page says nothing of these rows: that page, and a page
that has no `next`, are errors then.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, NotRequired, TypedDict, Unpack

from linkmgr.core.database.statements import MAX_BIGINT, Row, replica_row, replica_rows, rows
from linkmgr.core.errors import AppError

MAX_BYTES = 4 << 20  # of the rows of a page as JSON
_SHORT = 150  # rows that have fewer bytes in any case: the longest ones, deliveries, have 26 KB
MAX_SORTED = 20_000  # rows of a list by another order than the newest first
_NAMED = """
    SELECT *
      FROM (SELECT * FROM matches WHERE id < %(after)s ORDER BY id DESC LIMIT %(most)s) newest
     ORDER BY CASE %(order)s WHEN 'name' THEN lower(name) END, id DESC
     LIMIT %(limit)s OFFSET %(offset)s
    """
_COUNTED = "SELECT total FROM usage WHERE user_id = %(user_id)s AND counted = %(counted)s"


def fitting(
    sql: str, *, limit: int, read: Callable[..., list[Row]] = rows, **params: Any
) -> tuple[list[Row], bool]:
    """Read the first rows of a query that have MAX_BYTES together, at most `limit`. Return True if
    bytes end them."""
    if limit <= _SHORT:
        return read(sql, limit=limit, **params), False
    stored = read(
        f"""
        SELECT *
          FROM (SELECT *, sum(row_bytes) OVER (ROWS UNBOUNDED PRECEDING) AS list_bytes
                  FROM (SELECT listed.*, octet_length(to_json(listed)::text) AS row_bytes FROM ({sql}) listed
                        OFFSET 0) sized) summed
         WHERE list_bytes - row_bytes < %(max_bytes)s
        """,  # noqa: S608 - the rows that fit
        limit=limit,
        max_bytes=MAX_BYTES,
        **params,
    )
    has_more = len(stored) > 1 and stored[-1]["list_bytes"] > MAX_BYTES
    del stored[len(stored) - has_more :]
    for row in stored:
        del row["row_bytes"], row["list_bytes"]
    return stored, has_more


class Paging(TypedDict):
    """The requested page: `number`, or the rows behind the cursor `after`."""

    limit: int
    number: int
    after: int | None


class NamedPaging(Paging):
    q: NotRequired[str | None]
    order: NotRequired[str | None]


class Page(NamedTuple):
    """One page of a list, with the total of the whole list.

    `number` is None for a page behind a cursor. `next` is the cursor of the next page, or None on
    the last one.
    """

    rows: list[Row]
    total: int
    limit: int
    number: int | None
    next: int | None


def named_page(matches: str, *, user_id: int, counted: str = "", **paging: Unpack[NamedPaging]) -> Page:
    """Read one page of a list of rows that have a `name`. `matches` is the query of all of them
    that match `q`."""
    total = "SELECT count(*) FROM matches"
    return page(_NAMED, total, counted=counted, matches=matches, once=False, user_id=user_id, **paging)


def page(
    sql: str,
    total: str = "",
    *,
    counted: str = "",
    limit: int,
    number: int,
    after: int | None = None,
    cursor: str | None = "id",
    matches: str = "",
    once: bool = True,
    order: str | None = None,
    **params: Any,
) -> Page:
    """Read one page of a list. `sql` is the ordered query with `id < %(after)s` and LIMIT %(limit)s
    OFFSET %(offset)s. `total` is the SQL of one value, the total of the whole list; NULL is read as
    0. That of a list without `q` is the number of rows of the table `counted`, if there is one.
    `cursor` is the column by which the query is ordered, if there is one; it is removed from the
    rows unless it is their id. `matches` is a query from which both read rows, executed `once` or
    else as a part of each. A list that can be in another `order` compares the %(most)s newest rows,
    and has no cursor then.

    The total is read with the rows. Only a page past the end, which has no rows, needs a second
    statement. Behind a cursor, one row more shows that there is a next page. In front of it there
    may be any number of rows.
    """
    if number == 2 and limit > _SHORT:  # noqa: PLR2004 - the first page that another one may not have reached
        start = page(
            sql, total, counted=counted, limit=limit, number=1, cursor=cursor, matches=matches, once=once, order=order,
            **params,
        )  # fmt: skip
        if start.next and len(start.rows) < limit:
            raise AppError("page_too_long", rows=len(start.rows))
    params, offset = {"q": None, "order": order} | params, min((number - 1) * limit, 2**62)
    if counted and params["q"] is None:
        total, params["counted"] = _COUNTED, counted
    is_newest_first = order in (None, "date")
    values = params | {"limit": limit, "offset": offset, "after": MAX_BIGINT}
    if after is not None:
        values |= {"limit": limit + 1, "after": after}
    values["most"] = params.get("most") or (values["limit"] + offset if is_newest_first else MAX_SORTED)
    total_column = f"coalesce(({total}), 0) AS list_total"
    prefix = f"WITH matches AS {'' if once else 'NOT '}MATERIALIZED ({matches}) " if matches else ""
    listed = f"{prefix}SELECT {total_column}, listed.* FROM ({sql}) listed"  # noqa: S608 - a list with its total
    stored, is_cut = fitting(listed, read=replica_rows, **values)
    first = next(iter(stored), None)
    if first is None and (number > 1 or after is not None):
        first = replica_row(f"{prefix}SELECT {total_column}", **params)
    list_total = first["list_total"] if first else 0
    has_next = is_cut or (number * limit < list_total if after is None else len(stored) > limit)
    del stored[limit:]
    following = stored[-1][cursor] if cursor and stored and has_next and is_newest_first else None
    if is_cut and (number > 1 or following is None):
        raise AppError("page_too_long", rows=len(stored))
    for row in stored:
        del row["list_total"]
        if cursor not in ("id", None):
            del row[cursor]
    return Page(stored, list_total, limit, number if after is None else None, following)
