"""Campaigns and their links."""

from typing import Unpack

from psycopg2.errors import UniqueViolation

from linkmgr.db.statements import Page, Paging, Row, page, row, rows, run
from linkmgr.errors import AppError, not_found
from linkmgr.repository.names import run_with_name
from linkmgr.settings import settings


def _with_urls(campaign: Row) -> Row:
    """Add the URL of the rotator, or False without a slug, and the URL of the list."""
    base, username, slug = settings().base_url, campaign["username"], campaign["slug"]
    campaign["rotator"] = f"{base}/r/{slug}" if slug else False
    campaign["list"] = f"{base}/u/{username}/{slug or 'list'}-{campaign['id']}"
    return campaign


def index(user_id: int, **paging: Unpack[Paging]) -> Page:
    campaigns = page(
        """
        SELECT c.*, username
          FROM campaigns c
          JOIN users u ON u.id = c.user_id
         WHERE user_id = %(user_id)s AND c.id < %(after)s
         ORDER BY c.id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'campaigns'",
        user_id=user_id,
        **paging,
    )
    return campaigns._replace(rows=[_with_urls(campaign) for campaign in campaigns.rows])


def batch(user_id: int, after: int, limit: int) -> list[Row]:
    return rows(
        """
        SELECT *, coalesce(slug, '') AS slug, created AS date
          FROM campaigns
         WHERE user_id = %(user_id)s AND id > %(after)s
         ORDER BY id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=limit,
    )


def read(user_id: int, campaign_id: int) -> Row:
    campaign = row(
        """
        SELECT c.*, coalesce(slug, '') AS slug, username, c.version::text
          FROM campaigns c
          JOIN users u ON u.id = c.user_id
         WHERE user_id = %(user_id)s AND c.id = %(campaign_id)s
        """,
        user_id=user_id,
        campaign_id=campaign_id,
    )
    if campaign is None:
        raise not_found("campaign")
    return _with_urls(campaign)


def _has_name(user_id: int, campaign_id: int, name: str) -> bool:
    """Return True if another campaign of the user has this name."""
    other = row(
        """
        SELECT id FROM campaigns
         WHERE user_id = %(user_id)s AND id <> %(campaign_id)s AND name = %(name)s
        """,
        user_id=user_id,
        campaign_id=campaign_id,
        name=name,
    )
    return other is not None


def _store(sql: str, user_id: int, campaign_id: int, members: Row) -> Row | None:
    """Run a create or an update. If name and slug are both taken, report the name.

    PostgreSQL reports only one violated constraint, in an order that it does not define.
    """
    try:
        return run_with_name(sql, user_id=user_id, campaign_id=campaign_id, **members)
    except UniqueViolation as error:
        if error.diag.constraint_name == "campaign_slug_taken" and _has_name(user_id, campaign_id, members["name"]):
            raise AppError("campaign_name_taken") from None
        raise


def add(user_id: int, members: Row) -> Row:
    added = _store(
        """
        INSERT INTO campaigns (user_id, name, slug, public)
        VALUES (%(user_id)s, %(name)s, nullif(%(slug)s, ''), %(public)s)
        RETURNING *, coalesce(slug, '') AS slug, created AS date, version::text,
                  (SELECT username FROM users WHERE users.id = user_id) AS username
        """,
        user_id,
        0,
        members,
    )
    assert added is not None
    return _with_urls(added)


def update(user_id: int, campaign_id: int, members: Row) -> Row:
    """Change the members that are not None. An empty slug removes the slug, and the rotator with it."""
    updated = _store(
        """
        UPDATE campaigns
           SET name = %(name)s,
               slug = nullif(coalesce(%(slug)s, slug), ''),
               public = coalesce(%(public)s, public)
         WHERE user_id = %(user_id)s AND id = %(campaign_id)s
        RETURNING *, coalesce(slug, '') AS slug, version::text,
                  (SELECT username FROM users WHERE users.id = user_id) AS username
        """,
        user_id,
        campaign_id,
        members,
    )
    if updated is None:
        raise not_found("campaign")
    return _with_urls(updated)


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
    if removed is None:
        raise not_found("link")


def delete(user_id: int, campaign_id: int) -> None:
    """Delete a campaign. Its links remain."""
    deleted = run(
        "DELETE FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign_id)s RETURNING id",
        user_id=user_id,
        campaign_id=campaign_id,
    )
    if deleted is None:
        raise not_found("campaign")
