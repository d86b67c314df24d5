"""Conversions: what visitors did after their visit. Those of pages and of keys are in one table."""

from collections.abc import Iterator
from typing import Any, Unpack

import orjson

from linkmgr.core.database.paging import Page, Paging, page
from linkmgr.core.database.statements import MAX_BIGINT, Row, row, rows, run, run_unsynced, timestamp
from linkmgr.core.database.tables import BATCH
from linkmgr.core.errors import existing
from linkmgr.repository import purge

DAYS = 30  # after the visit
MAX_EVENT, MAX_ORDER = 50, 100  # characters
MAX_VALUE = 1_000_000_000
MAX_OF_PAGE, MAX_OF_CLICK, MAX_ROWS = 10, 100, 1_000_000  # of a click from pages, of a click, of a user
VISITOR_DAYS = 90  # for which a row has the digest of its visitor
KEY, PAGE = SOURCES = ("key", "page")
DEFAULT_EVENT = "conversion"
PROBLEMS = ("", "unreadable", "not_allowed", "too_large")
TIMES = ("click", "date", "updated")  # members of a record
FILTERS = ("link", "event", "order", "currency", "source", "from", "to")
_WAIT_HOURS = 24  # for the visit: an outage of the database delays it


def add(
    user_id: int | None, sent: list[Row], *, by_page: bool = False, is_restored: bool = False
) -> list[Row]:
    """Store conversions of links, which with `user_id` must be of this user, and return the
    `result` and the `id` of each. Those of pages do not wait for the disk.

    Each of `sent` has `link`, `event`, `order_id`, `value`, `currency` and `source`, `click` or
    `visitors` (digests), and may have `at`, `problem` and `labels`. Times are texts.
    """
    write = run_unsynced if by_page else run
    stored = write(
        """
        SELECT coalesce(json_agg(a), '[]') AS outcomes
          FROM add_conversions(%(user_id)s, %(sent)s, %(days)s, %(of_click)s, %(most)s, %(restored)s) AS a
        """,
        user_id=user_id,
        sent=orjson.dumps(sent).decode(),
        days=DAYS,
        of_click=MAX_OF_PAGE if by_page else MAX_OF_CLICK,
        restored=is_restored,
        most=MAX_ROWS,
    )
    assert stored
    outcomes: list[Row] = stored["outcomes"]
    return outcomes


def add_labels() -> None:
    """Copy the labels of visits that were stored after their conversions. Those that are not stored
    within a day have none: their plan has no more visits."""
    run_unsynced(
        """
        WITH waiting AS MATERIALIZED (
            SELECT id, tracked_id, click FROM conversions
             WHERE labels IS NULL
             ORDER BY click DESC
             LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED)
        UPDATE conversions c
           SET labels = coalesce(visit.labels, '{}'), visitor = visit.visitor
          FROM waiting w LEFT JOIN LATERAL visit_at(w.tracked_id, w.click) visit ON true
         WHERE c.id = w.id
           AND (visit.labels IS NOT NULL OR w.click < now() - make_interval(hours => %(hours)s))
        """,
        limit=purge.MAX_ROWS,
        hours=_WAIT_HOURS,
    )


def forget_visitors(limit: int) -> int:
    """Put a number in place of the digest of some visitors whose first click is older than
    VISITOR_DAYS, the same for all conversions of one, so that experiments still count each once.
    Return how many conversions were changed: at least `limit` if there are that many, and at most
    ten times as many."""
    changed = run_unsynced(
        """
        WITH old AS MATERIALIZED (
            SELECT visitor FROM conversions
             WHERE click < now() - make_interval(days => %(days)s) AND octet_length(visitor) <> 8
             ORDER BY click
             LIMIT %(limit)s),
        taken AS MATERIALIZED (
            SELECT id, visitor FROM conversions
             WHERE visitor = ANY (ARRAY(SELECT visitor FROM old)) AND octet_length(visitor) <> 8
             ORDER BY visitor, id
             LIMIT 10 * %(limit)s FOR NO KEY UPDATE),
        changed AS (
            UPDATE conversions c
               SET visitor = int8send(first)
              FROM (SELECT id, min(id) OVER (PARTITION BY visitor) AS first FROM taken) t
             WHERE c.id = t.id
            RETURNING 1)
        SELECT count(*) AS number FROM changed
        """,
        days=VISITOR_DAYS,
        limit=limit,
    )
    assert changed is not None
    return int(changed["number"])


def _to_record(stored: Row) -> Row:
    """Return a record, with the `version` if it was read."""
    record: Row = stored.pop("record")
    times = {name: timestamp(record[name]) for name in TIMES}
    return stored | record | times


_MATCHES = """
    SELECT id, c AS conversion
      FROM conversions c
     WHERE user_id = %(user_id)s
       AND (%(only_link)s::bigint IS NULL OR tracked_id = %(only_link)s)
       AND (%(only_event)s::text IS NULL OR event = %(only_event)s)
       AND (%(only_currency)s::text IS NULL OR currency = %(only_currency)s)
       AND (%(only_source)s::text IS NULL OR source = %(only_source)s)
       AND (%(only_from)s::timestamptz IS NULL OR created >= %(only_from)s)
       AND (%(only_to)s::timestamptz IS NULL OR created < %(only_to)s)
    """
# A condition that may be NULL as those above would not use the index.
_OF_ORDER = "AND order_id = %(only_order)s AND order_id <> ''"


def index(user_id: int, *, filters: Row, **paging: Unpack[Paging]) -> Page:
    """List conversions, the last stored first. `filters` has each of FILTERS, or None."""
    counted = "" if any(filters.values()) else "conversions"
    return _page(user_id, filters, "SELECT count(*) FROM matches", counted=counted, **paging)


def _page(user_id: int, filters: Row, total: str, **params: Any) -> Page:
    listed = page(
        """
        SELECT id, conversion_record(conversion) AS record
          FROM matches
         WHERE id < %(after)s
         ORDER BY id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        total,
        matches=_MATCHES + _OF_ORDER if filters["order"] else _MATCHES,
        once=False,
        user_id=user_id,
        **{f"only_{name}": value for name, value in filters.items()},
        **params,
    )
    return listed._replace(rows=[_to_record(stored) for stored in listed.rows])


def matching(user_id: int, filters: Row) -> Iterator[list[Row]]:
    """Return the rows of all pages of `index`, without counting them for each batch."""
    after: int | None = MAX_BIGINT
    while after:
        batch = _page(user_id, filters, "SELECT 0", limit=BATCH, number=1, after=after)
        yield batch.rows
        after = batch.next


def names_of_links(user_id: int, ids: list[int]) -> dict[int, Row | None]:
    """Return the names of links, also of those in the bin, as statistics have them, by their
    ids."""
    named = rows(
        """
        SELECT id, label_name(%(user_id)s, 'target', id::text) AS name
          FROM unnest(%(ids)s::bigint[]) AS id
        """,
        user_id=user_id,
        ids=ids,
    )
    return {link["id"]: link["name"] for link in named}


def read(user_id: int, conversion_id: int) -> Row:
    stored = row(
        """
        SELECT version::text, conversion_record(c) AS record
          FROM conversions c
         WHERE user_id = %(user_id)s AND id = %(conversion_id)s
        """,
        user_id=user_id,
        conversion_id=conversion_id,
    )
    return _to_record(existing(stored, "conversion"))


def update(user_id: int, conversion_id: int, *, value: Any, refund: Any, currency: str | None) -> Row:
    """Change the value, or subtract a refund from the one that is stored."""
    run(
        """
        WITH before AS MATERIALIZED (
            SELECT id, value, currency, problem FROM conversions
             WHERE user_id = %(user_id)s AND id = %(conversion_id)s
               FOR NO KEY UPDATE),
        changed AS (
            UPDATE conversions c
               SET value = coalesce(%(value)s::numeric, coalesce(c.value, 0) - %(refund)s::numeric, c.value),
                   currency = coalesce(%(currency)s, c.currency),
                   problem = CASE WHEN num_nulls(%(value)s, %(refund)s) = 2 THEN c.problem ELSE '' END,
                   version = random_version(), updated = now()
              FROM before
             WHERE c.id = before.id
               AND (c.value, c.currency) IS DISTINCT FROM
                   (coalesce(%(value)s::numeric, coalesce(c.value, 0) - %(refund)s::numeric, c.value),
                    coalesce(%(currency)s, c.currency))
            RETURNING c.*)
        INSERT INTO outbox (user_id, type, stored, data)
        SELECT user_id, 'conversion.changed', conversion_record(ROW(c.*)::conversions),
               to_jsonb(before) - 'id'
          FROM changed c, before
         WHERE notes_changes(user_id)
        """,
        user_id=user_id,
        conversion_id=conversion_id,
        value=value,
        refund=refund,
        currency=currency,
    )
    return read(user_id, conversion_id)


def delete(user_id: int, conversion_id: int) -> None:
    deleted = run(
        """
        WITH deleted AS (
            DELETE FROM conversions WHERE user_id = %(user_id)s AND id = %(conversion_id)s
            RETURNING *),
        noted AS (
            INSERT INTO outbox (user_id, type, data)
            SELECT user_id, 'conversion.deleted', conversion_record(ROW(d.*)::conversions)
              FROM deleted d
             WHERE notes_changes(user_id))
        SELECT id FROM deleted
        """,
        user_id=user_id,
        conversion_id=conversion_id,
    )
    existing(deleted, "conversion")


def batch(user_id: int, after: int) -> list[Row]:
    """Return the next conversions behind an id, oldest first, with microseconds, of links that are
    exported too: not of those in the bin."""
    stored = rows(
        """
        SELECT conversion_record(c) AS record
          FROM conversions c
         WHERE user_id = %(user_id)s AND id > %(after)s
           AND EXISTS (SELECT FROM links l WHERE l.user_id = c.user_id AND l.id = tracked_id)
         ORDER BY id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=BATCH,
    )
    return [conversion["record"] for conversion in stored]


def setup(user_id: int) -> Row:
    stored = row("SELECT clickid, page_value FROM users WHERE id = %(user_id)s", user_id=user_id)
    return existing(stored, "user")


def change_setup(user_id: int, *, clickid: bool | None, page_value: str | None) -> Row:
    """Change the settings of an account that are not None, which its activity notes."""
    changed = run(
        """
        WITH before AS MATERIALIZED (
            SELECT id, clickid, page_value FROM users WHERE id = %(user_id)s FOR NO KEY UPDATE),
        changed AS (
            UPDATE users u
               SET clickid = coalesce(%(clickid)s, u.clickid),
                   page_value = CASE WHEN %(page_value)s::numeric IS NULL THEN u.page_value
                                     ELSE nullif(%(page_value)s::numeric, 0) END
              FROM before
             WHERE u.id = before.id
            RETURNING u.id, has_activity, u.clickid, u.page_value),
        noted AS (
            INSERT INTO outbox (user_id, type, data)
            SELECT -c.id, 'conversion',
                   jsonb_build_object('action', 'setup', 'changes', jsonb_object_agg(
                       name, jsonb_build_array(to_jsonb(before) -> name, value)))
              FROM changed c, before, jsonb_each(to_jsonb(c) - 'has_activity') AS members (name, value)
             WHERE has_activity AND value <> to_jsonb(before) -> name
             GROUP BY c.id)
        SELECT clickid, page_value FROM changed
        """,
        user_id=user_id,
        clickid=clickid,
        page_value=page_value,
    )
    return existing(changed, "user")
