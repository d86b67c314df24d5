"""Campaigns and their links."""

from typing import Any

from psycopg2.errors import UniqueViolation

from linkmgr.db.statements import Row, row, run
from linkmgr.errors import AppError, existing, not_found
from linkmgr.repository.tables import Table, run_with_name


def _has_name(user_id: int, name: str, row_id: int = 0, **_: Any) -> bool:
    """Return True if another campaign of the user has this name."""
    other = row(
        "SELECT id FROM campaigns WHERE user_id = %(user_id)s AND id <> %(row_id)s AND name = %(name)s",
        user_id=user_id,
        row_id=row_id,
        name=name,
    )
    return other is not None


def _store(sql: str, **params: Any) -> Row | None:
    """Run a create or an update. If name and slug are both taken, report the name.

    PostgreSQL reports only one violated constraint, in an order that it does not define.
    """
    try:
        return run_with_name(sql, **params)
    except UniqueViolation as error:
        if error.diag.constraint_name == "campaign_slug_taken" and _has_name(**params):
            raise AppError("campaign_name_taken") from None
        raise


CAMPAIGNS = Table(
    "campaigns",
    "campaign",
    "name public",
    # An empty slug removes the slug, and the rotator with it.
    added={"slug": "nullif(%(slug)s, '')"},
    changed={"slug": "nullif(coalesce(%(slug)s, slug), '')"},
    columns="""
    *, coalesce(slug, '') AS slug, coalesce(to_json(%(base)s::text || '/r/' || slug), 'false') AS rotator,
    %(base)s::text || '/u/' || (SELECT username FROM users WHERE users.id = user_id)
        || '/' || coalesce(slug, 'list') || '-' || id AS list, created AS date, version::text
    """,
    write=_store,
)
index, batch, read, delete = CAMPAIGNS.index, CAMPAIGNS.batch, CAMPAIGNS.read, CAMPAIGNS.delete
add, update = CAMPAIGNS.add, CAMPAIGNS.update


def assign(user_id: int, campaign_id: int, link_id: int) -> None:
    """Move a link to a campaign. A link is in one campaign at most.

    FOR KEY SHARE waits for a concurrent delete of the campaign, so that no reference to a deleted row is stored.
    """
    result = run(
        """
        WITH campaign AS (
            SELECT id FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign_id)s FOR KEY SHARE),
        assigned AS (
            UPDATE links
               SET campaign_id = campaign.id
              FROM campaign
             WHERE user_id = %(user_id)s AND links.id = %(link_id)s
            RETURNING links.id)
        SELECT EXISTS (SELECT FROM campaign) AS campaign, EXISTS (SELECT FROM assigned) AS link
        """,
        user_id=user_id,
        campaign_id=campaign_id,
        link_id=link_id,
    )
    assert result is not None
    for kind in ("campaign", "link"):
        if not result[kind]:
            raise not_found(kind)


def remove(user_id: int, campaign_id: int, link_id: int) -> None:
    """Remove a link from a campaign."""
    removed = run(
        """
        UPDATE links SET campaign_id = NULL
         WHERE user_id = %(user_id)s AND campaign_id = %(campaign_id)s AND id = %(link_id)s
        RETURNING id
        """,
        user_id=user_id,
        campaign_id=campaign_id,
        link_id=link_id,
    )
    existing(removed, "link")
