"""The activity of accounts with members: who changed what.

It is kept among the events, under the negative id of the account: so it has the bounds of events,
and `GET /api/events` does not list it.
"""

from datetime import datetime
from typing import Unpack

from linkmgr.core.database.paging import Page, Paging, page
from linkmgr.core.database.statements import Row
from linkmgr.features.webhooks.schema import SUBJECTS

CHANGES = ("created", "updated", "deleted")
TYPES = (
    *(f"{subject}.{change}" for subject in SUBJECTS for change in CHANGES),
    "public.updated",
    "import.finished",
    "conversion.changed",
    "conversion.deleted",
)
OF_ACCOUNT = (
    *(f"{subject}.{change}" for subject in ("key", "member") for change in CHANGES),
    "conversion.setup",
)
DAYS_KEPT = 90
READER = 0  # the id of the activity among those of webhooks
# The first of these that a record has is its name.
_NAMES = ("name", "title", "email", "shorturl", "domain", "alias", "host", "code", "order", "event", "source")
# Members whose values are left out: QR codes of wireless networks have a password.
_SECRET = ("data",)


def of_record(event: Row, data: Row, changes: Row) -> Row:
    """Return the part of an event that the activity keeps, as `outbox.move` takes it. `changes` has
    the previous and the new value by member."""
    name = next((data[name] for name in _NAMES if data.get(name)), "")
    actor = event["actor"] or {}
    return {
        "id": event["id"],
        "user_id": -abs(event["user_id"]),
        "type": event["type"],
        "created": event["created"],
        "data": {"id": data.get("id", event["object_id"]), "name": str(name)[:255]},
        "extra": {
            "actor": {"user": event["person_id"], "name": event["person"], "key": actor.get("key")},
            "changes": {name: [] if name in _SECRET else pair for name, pair in changes.items()},
        },
        "stored": True,
        "webhooks": [],
    }


def is_noted(event: Row) -> bool:
    """Return False for what no person does: a report of a shop that replaces one of a page."""
    return event["type"] != "conversion.changed" or event["stored"] is not None


def of_audit(event: Row) -> Row:
    """Return the same for a change of a key, a member or the settings of conversions."""
    data = event["data"]
    kind = f"{event['type'].removeprefix('audit.')}.{data['action']}"
    return of_record(event | {"type": kind}, data, data["changes"])


def index(
    user_id: int,
    *,
    pattern: str | None = None,
    by: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    **paging: Unpack[Paging],
) -> Page:
    """List the changes of an account, the newest first. The pattern of LIKE `pattern` selects
    types, and `by` is the id of a person."""
    return page(
        """
        SELECT number AS id, type, created AS date, data ->> 'name' AS name,
               (data ->> 'id')::bigint AS row, extra -> 'actor' AS actor,
               extra -> 'changes' AS changes
          FROM matches
         WHERE number < %(after)s
         ORDER BY number DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT count(*) FROM matches",
        matches="""
        SELECT * FROM events
         WHERE user_id = -%(user_id)s::bigint
           AND (%(pattern)s::text IS NULL OR type LIKE %(pattern)s)
           AND (%(by)s::bigint IS NULL OR (extra -> 'actor' ->> 'user')::bigint = %(by)s)
           AND (%(since)s::timestamptz IS NULL OR created >= %(since)s)
           AND (%(until)s::timestamptz IS NULL OR created < %(until)s)
        """,
        once=False,
        user_id=user_id,
        pattern=pattern,
        by=by,
        since=since,
        until=until,
        **paging,
    )
